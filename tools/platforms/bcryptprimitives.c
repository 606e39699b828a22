/* Wine before 9 lacks this library of Windows, from which Rust's programs take their random bytes. It passes them on
 * from the generator that Wine has. For checks alone: Windows has its own. */
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID bytes, ULONG length);

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T length) {
  while (length > 0) {
    ULONG piece = length > 0x10000 ? 0x10000 : (ULONG)length;
    if (!SystemFunction036(bytes, piece)) {
      return FALSE;
    }
    bytes += piece;
    length -= piece;
  }
  return TRUE;
}
