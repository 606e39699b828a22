"""Whole tables in formats that the command reads and does not write, and changes within what they pack.

Everything is made with the standard library. A function `in_…` takes a whole file, a random generator and a function
that changes bytes; it changes what is packed and packs it again, with lengths and checksums made right.
"""

import bz2
import gzip
import io
import lzma
import struct
import warnings
import zipfile
import zlib

ROWS = 200
EXTREMES = {
    1: (0, 0x7F, 0x80, 0xFF),
    2: (0, 0x7FFF, 0x8000, 0xFFFF),
    4: (0, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF),
    8: (0, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1),
}


def extreme(chance, width):
    """A number of this many bytes that is at an end of its range, little-endian."""
    return chance.choice(EXTREMES[width]).to_bytes(width, "little")


# Zip archives and streams that are compressed.


def archive(members, method=zipfile.ZIP_DEFLATED):
    """A zip archive of (name, content)."""
    out = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w", method) as written:
        # Two of a name are among the damages.
        warnings.simplefilter("ignore")
        for name, content in members:
            written.writestr(zipfile.ZipInfo(name), content, method)
    return out.getvalue()


def members_of(content):
    with zipfile.ZipFile(io.BytesIO(content)) as read:
        return [(each.filename, read.read(each)) for each in read.infolist()]


# Places and widths of the numbers of an archive's headers, by their signatures.
HEADERS = {
    b"PK\x03\x04": ((6, 2), (8, 2), (18, 4), (22, 4), (26, 2), (28, 2)),
    b"PK\x01\x02": ((8, 2), (10, 2), (20, 4), (24, 4), (28, 2), (30, 2), (32, 2), (42, 4)),
    b"PK\x05\x06": ((8, 2), (10, 2), (12, 4), (16, 4), (20, 2)),
}


def with_header_changed(content, chance):
    """The archive with one number of one header at an extreme."""
    signature = chance.choice(list(HEADERS))
    places = [at for at in range(len(content) - 3) if content[at : at + 4] == signature]
    place, width = chance.choice(HEADERS[signature])
    at = chance.choice(places) + place
    return content[:at] + extreme(chance, width) + content[at + width :]


def in_zip(content, chance, change, within=lambda name, part, chance, change: change(part)):
    if chance.randrange(6) == 0:
        return with_header_changed(content, chance)
    members = members_of(content)
    at = chance.randrange(len(members))
    name, part = members[at]
    kind = chance.randrange(20)
    if kind == 0:
        del members[at]
    elif kind == 1:
        members[at] = (chance.choice(members)[0], part)
    elif kind == 2:
        members[at] = (name, chance.choice(members)[1])
    elif kind == 3:
        members.insert(at, (change(name.encode()).decode(errors="replace")[:1000], part))
    else:
        members[at] = (name, within(name, part, chance, change))
    return archive(members, chance.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED)))


def in_gzip(content, _chance, change):
    return gzip.compress(change(gzip.decompress(content)), mtime=0)


def in_bzip2(content, _chance, change):
    return bz2.compress(change(bz2.decompress(content)))


def in_xz(content, chance, change):
    if chance.randrange(3) > 0:
        return lzma.compress(change(lzma.decompress(content)))
    # The first block's header, behind that of the stream: its filters and how much memory they ask for.
    size = (content[12] + 1) * 4
    header = bytearray(content[12 : 12 + size - 4])
    at = 1 + chance.randrange(len(header) - 1)
    header[at] = chance.choice((*EXTREMES[1], header[at] ^ 1 << chance.randrange(8), chance.randrange(41)))
    return content[:12] + header + zlib.crc32(header).to_bytes(4, "little") + content[12 + size :]


def in_zstd(content, _chance, change):
    return zstd(change(b"".join(blocks_of(content))))


def zstd(content):
    """A zstd frame with the content in raw blocks."""
    blocks, size = b"", 1 << 16
    pieces = [content[at : at + size] for at in range(0, len(content), size)] or [b""]
    for number, piece in enumerate(pieces):
        blocks += (int(number + 1 == len(pieces)) | len(piece) << 3).to_bytes(3, "little") + piece
    return b"\x28\xb5\x2f\xfd\xa0" + len(content).to_bytes(4, "little") + blocks


def blocks_of(frame):
    """The contents of the raw blocks of such a frame."""
    at = 9
    while at < len(frame):
        head = int.from_bytes(frame[at : at + 3], "little")
        yield frame[at + 3 : at + 3 + (head >> 3)]
        at += 3 + (head >> 3)


def arrow_stream(file):
    """The stream within an Arrow file: what is between its mark, with what pads it, and its footer."""
    footer = int.from_bytes(file[-10:-6], "little")
    start = file.index(b"\xff\xff\xff\xff")
    return file[start : -10 - footer]


def in_arrow(content, chance, _change):
    """A number in the description of a batch or of the schema, which all lie at multiples of four."""
    marks = [at for at in range(0, len(content) - 8, 4) if content[at : at + 4] == b"\xff\xff\xff\xff"]
    at = chance.choice(marks)
    length = min(int.from_bytes(content[at + 4 : at + 8], "little"), len(content) - at - 8)
    width = chance.choice((4, 4, 8))
    place = at + 4 + 4 * chance.randrange(length // 4 + 1)
    number = int.from_bytes(content[place : place + width], "little")
    near = (number + chance.choice((-1, 1, 4, 256))) % (1 << 8 * width)
    value = chance.choice((extreme(chance, width), near.to_bytes(width, "little")))
    return content[:place] + value + content[place + width :]


# Workbooks. The same table in each: a text, a whole number, a date, a text in the cell, a truth value, a formula.

NAMES = ("email", "age", "since", "note", "flag", "twice")
TEXTS = list(NAMES) + [f"user{at}@example.com" for at in range(ROWS)]


def cells():
    """(row, email, age, day) of each row of the table."""
    return [(at + 1, len(NAMES) + at, at, 45_292 + at) for at in range(ROWS)]


XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
DOCUMENT = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"


def relations(*pairs):
    each = "".join(
        f'<Relationship Id="rId{at}" Type="{DOCUMENT}/{kind}" Target="{target}"/>' for at, (kind, target) in enumerate(pairs, 1)
    )
    return f'{XML}<Relationships xmlns="{PACKAGE}">{each}</Relationships>'


def xlsx():
    def row(at, columns):
        return f'<row r="{at + 1}" spans="1:6">{"".join(columns)}</row>'

    rows = [row(0, (f'<c r="{"ABCDEF"[at]}1" t="s"><v>{at}</v></c>' for at in range(len(NAMES))))]
    for at, text, age, day in cells():
        rows.append(
            row(at, (
                f'<c r="A{at + 1}" t="s"><v>{text}</v></c>',
                f'<c r="B{at + 1}"><v>{age}</v></c>',
                f'<c r="C{at + 1}" s="1"><v>{day}</v></c>',
                f'<c r="D{at + 1}" t="inlineStr"><is><t xml:space="preserve"> n{at} &amp; more</t></is></c>',
                f'<c r="E{at + 1}" t="b"><v>{at % 2}</v></c>',
                f'<c r="F{at + 1}"><f>B{at + 1}*2</f><v>{age * 2}.5</v></c>',
            ))
        )  # fmt: skip
    strings = "".join(f"<si><t>{text}</t></si>" for text in TEXTS[:-1])
    rich = f'<si><r><rPr><b/></rPr><t>user{ROWS - 1}</t></r><r><t>@example.com</t></r><rPh sb="0" eb="1"><t>x</t></rPh></si>'
    sheet = (
        f'{XML}<worksheet xmlns="{MAIN}"><dimension ref="A1:F{ROWS + 1}"/><cols><col min="1" max="6" width="20"/></cols>'
        f'<sheetData>{"".join(rows)}</sheetData><mergeCells count="1"><mergeCell ref="H1:I2"/></mergeCells></worksheet>'
    )
    workbook = (
        f'{XML}<workbook xmlns="{MAIN}" xmlns:r="{DOCUMENT}"><workbookPr date1904="0"/><sheets>'
        '<sheet name="People" sheetId="1" r:id="rId1"/></sheets><definedNames><definedName name="all">People!$A$1:$F$9'
        "</definedName></definedNames></workbook>"
    )
    styles = (
        f'{XML}<styleSheet xmlns="{MAIN}"><numFmts count="1"><numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd"/></numFmts>'
        '<fonts count="1"><font/></fonts><fills count="1"><fill><patternFill/></fill></fills><borders count="1"><border/></borders>'
        '<cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="164" applyNumberFormat="1"/></cellXfs></styleSheet>'
    )
    kinds = "".join(
        f'<Override PartName="/xl/{name}.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.{kind}+xml"/>'
        for name, kind in (
            ("workbook", "sheet.main"), ("worksheets/sheet1", "worksheet"), ("styles", "styles"), ("sharedStrings", "sharedStrings"),
        )
    )  # fmt: skip
    default = '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    return archive([
        ("[Content_Types].xml", f'{XML}<Types xmlns="{TYPES}">{default}{kinds}</Types>'),
        ("_rels/.rels", relations(("officeDocument", "xl/workbook.xml"))),
        ("xl/workbook.xml", workbook),
        ("xl/_rels/workbook.xml.rels", relations(
            ("worksheet", "worksheets/sheet1.xml"), ("styles", "styles.xml"), ("sharedStrings", "sharedStrings.xml"))),
        ("xl/worksheets/sheet1.xml", sheet),
        ("xl/styles.xml", styles),
        ("xl/sharedStrings.xml", f'{XML}<sst xmlns="{MAIN}" count="{len(TEXTS)}" uniqueCount="{len(TEXTS)}">{strings}{rich}</sst>'),
    ])  # fmt: skip


def varint(number):
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def record(kind, body=b""):
    """A record of an .xlsb part."""
    return varint(kind) + varint(len(body)) + body


def wide(text):
    return struct.pack("<I", len(text)) + text.encode("utf-16le")


def xlsb():
    def cell(column, style, rest):
        return struct.pack("<II", column, style) + rest

    def row(at):
        return record(0, struct.pack("<IIHBBI", at, 0, 300, 0, 0, 1) + struct.pack("<II", 0, len(NAMES) - 1))

    rows = row(0) + b"".join(record(7, cell(at, 0, struct.pack("<I", at))) for at in range(len(NAMES)))
    for at, text, age, day in cells():
        rows += row(at)
        rows += record(7, cell(0, 0, struct.pack("<I", text)))
        rows += record(2, cell(1, 0, struct.pack("<I", age << 2 | 2)))
        rows += record(5, cell(2, 1, struct.pack("<d", day)))
        rows += record(6, cell(3, 0, wide(f"n{at}")))
        rows += record(4, cell(4, 0, bytes([at % 2])))
        # A formula's number, its flags and its tokens: an int.
        rows += record(9, cell(5, 0, struct.pack("<dHI", age * 2 + 0.5, 0, 3) + struct.pack("<BHI", 0x1E, age, 0)))
    sheet = (
        record(0x81) + record(0x93, bytes(23)) + record(0x94, struct.pack("<IIII", 0, ROWS, 0, len(NAMES) - 1))
        + record(0x85) + record(0x89, bytes(30)) + record(0x8A) + record(0x86)
        + record(0x1E5, bytes(12)) + record(0x91) + rows + record(0x92) + record(0x82)
    )  # fmt: skip
    workbook = (
        record(0x83) + record(0x80, bytes(16)) + record(0x99, bytes(8)) + record(0x8F)
        + record(0x9C, struct.pack("<II", 0, 1) + wide("rId1") + wide("People")) + record(0x90)
        + record(0x16A, struct.pack("<IIII", 1, 0, 0, 0))
        + record(0x27, struct.pack("<IBI", 0, 0, 0xFFFFFFFF) + wide("all") + struct.pack("<IBH", 3, 0x1E, 7) + bytes(4))
        + record(0x9D, bytes(26)) + record(0x84)
    )  # fmt: skip
    formats = record(0x267, struct.pack("<I", 1)) + record(0x2C, struct.pack("<H", 164) + wide("yyyy-mm-dd")) + record(0x268)
    styles = record(0x269, struct.pack("<I", 2)) + b"".join(
        record(0x2F, struct.pack("<HHHHHBBHH", 0, number, 0, 0, 0, 0, 0, 0, 0)) for number in (0, 164)
    )
    strings = record(0x9F, struct.pack("<II", len(TEXTS), len(TEXTS)))
    strings += b"".join(record(0x13, b"\0" + wide(text)) for text in TEXTS) + record(0xA0)
    return archive([
        ("[Content_Types].xml", f'{XML}<Types xmlns="{TYPES}"><Default Extension="bin" ContentType="application/vnd.ms-excel"/></Types>'),
        ("_rels/.rels", relations(("officeDocument", "xl/workbook.bin"))),
        ("xl/workbook.bin", workbook),
        ("xl/_rels/workbook.bin.rels", relations(
            ("worksheet", "worksheets/sheet1.bin"), ("styles", "styles.bin"), ("sharedStrings", "sharedStrings.bin"))),
        ("xl/worksheets/sheet1.bin", sheet),
        ("xl/styles.bin", record(0x116) + formats + styles + record(0x26A) + record(0x117)),
        ("xl/sharedStrings.bin", strings),
    ])  # fmt: skip


def records_of(part):
    """(kind, body) of each record of an .xlsb part."""
    at, found = 0, []

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = part[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(part):
        kind, length = number(), number()
        found.append((kind, part[at : at + length]))
        at += length
    return found


def one_changed(found, chance, change):
    """The records with one changed, cut out, doubled, or of another kind: of each kind as often. Returns its place too."""
    kind = chance.choice(sorted({kind for kind, _ in found}))
    at = chance.choice([at for at, (other, _) in enumerate(found) if other == kind])
    body, found = found[at][1], list(found)
    what = chance.randrange(10)
    if what == 0:
        del found[at]
    elif what == 1:
        found.insert(at, found[at])
    elif what == 2:
        found[at] = (chance.choice(found)[0], body)
    elif what < 7 and body:
        width = chance.choice((1, 2, 2, 4, 4, 8))
        place = chance.randrange(0, len(body), min(width, 2))
        found[at] = (kind, body[:place] + extreme(chance, width)[: len(body) - place] + body[place + width :])
    else:
        found[at] = (kind, change(body))
    return found, at


def in_xlsb(content, chance, change):
    def within(name, part, chance, change):
        if not name.endswith(".bin") or chance.randrange(3) == 0:
            return change(part)
        return b"".join(record(*each) for each in one_changed(records_of(part), chance, change)[0])

    return in_zip(content, chance, change, within)


SECTOR = 512
FREE, END, FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD


def compound(stream):
    """A compound file with the one stream `Workbook`, of at least 4096 bytes."""
    stream = stream.ljust(4096, b"\0")
    used = -(-len(stream) // SECTOR)
    tables = next(count for count in range(1, 109) if count * SECTOR // 4 >= count + 1 + used)
    chain = [FAT] * tables + [END] + [at + 1 for at in range(tables + 1, tables + used)] + [END]
    chain += [FREE] * (tables * SECTOR // 4 - len(chain))

    def entry(name, kind, child, start, length):
        words = name.encode("utf-16le") + b"\0\0"
        head = words.ljust(64, b"\0") + struct.pack("<HBB", len(words) if name else 0, kind, 1)
        return head + struct.pack("<III", FREE, FREE, child) + bytes(36) + struct.pack("<IQ", start, length)

    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6) + bytes(6)
    header += struct.pack("<IIIIIIIII", 0, tables, tables, 0, 4096, END, 0, END, 0)
    header += struct.pack("<109I", *range(tables), *[FREE] * (109 - tables))
    folder = entry("Root Entry", 5, 1, END, 0) + entry("Workbook", 2, FREE, tables + 1, len(stream))
    folder += 2 * entry("", 0, FREE, 0, 0)
    return header + struct.pack(f"<{len(chain)}I", *chain) + folder + stream.ljust(used * SECTOR, b"\0")


def biff(found):
    """The stream of these records; where the sheet begins is made right."""
    place = 0
    for at, (kind, body) in enumerate(found):
        if kind == 0x809 and at:
            break
        place += 4 + len(body)
    out = b""
    for kind, body in found:
        if kind == 0x85:
            body = struct.pack("<I", place) + body[4:]
        out += struct.pack("<HH", kind & 0xFFFF, len(body) & 0xFFFF) + body
    return out


def xls_records():
    """(kind, body) of each record of the workbook."""

    def narrow(text):
        return struct.pack("<HB", len(text), 0) + text.encode("latin-1")

    def format_of(number):
        return 0xE0, struct.pack("<HHH", 0, number, 0) + bytes(14)

    bof = struct.pack("<HHHHII", 0x600, 5, 0, 0, 0, 0x600)
    found = [
        (0x809, bof), (0x42, struct.pack("<H", 1200)), (0x22, bytes(2)), (0x13D, struct.pack("<H", 1)),
        (0x41E, struct.pack("<H", 164) + narrow("yyyy-mm-dd")), format_of(0), format_of(164),
        (0x85, struct.pack("<IBB", 0, 0, 0) + b"\x06\x00People"),
        (0x17, struct.pack("<HHHH", 1, 0, 0, 0)),
        (0x18, struct.pack("<HBBHHHBBBB", 0, 0, 3, 11, 0, 0, 0, 0, 0, 0) + b"\0all" + struct.pack("<BHHHHH", 0x3B, 0, 0, 9, 0, 5)),
    ]  # fmt: skip
    texts = [narrow(text) for text in TEXTS]
    head, rest = b"".join(texts[:150]), b"".join(texts[150:])
    found += [(0xFC, struct.pack("<II", len(TEXTS), len(TEXTS)) + head), (0x3C, rest), (0x0A, b"")]
    found += [(0x809, struct.pack("<HH", 0x600, 0x10) + bof[4:]), (0x200, struct.pack("<IIHHH", 0, ROWS + 1, 0, len(NAMES), 0))]
    found += [(0xFD, struct.pack("<HHHI", 0, at, 0, at)) for at in range(len(NAMES))]
    for at, text, age, day in cells():
        found.append((0xFD, struct.pack("<HHHI", at, 0, 0, text)))
        if at % 3:
            found.append((0x27E, struct.pack("<HHHI", at, 1, 0, age << 2 | 2)))
            found.append((0x203, struct.pack("<HHHd", at, 2, 1, day)))
        else:
            found.append(
                (
                    0xBD,
                    struct.pack("<HH", at, 1) + struct.pack("<HIHI", 0, age << 2 | 2, 1, day << 2 | 2) + struct.pack("<H", 2),
                )
            )
        found.append((0x204, struct.pack("<HHH", at, 3, 0) + narrow(f"n{at}")))
        found.append((0x205, struct.pack("<HHHBB", at, 4, 0, at % 2, 0)))
        tokens = struct.pack("<BH", 0x1E, age)
        if at % 5:
            value = struct.pack("<d", age * 2 + 0.5)
            found.append((0x06, struct.pack("<HHH", at, 5, 0) + value + bytes(6) + struct.pack("<H", 3) + tokens))
        else:
            value = b"\0\0\0\0\0\0\xff\xff"
            found.append((0x06, struct.pack("<HHH", at, 5, 0) + value + bytes(6) + struct.pack("<H", 3) + tokens))
            found.append((0x207, narrow(f"{age}")))
    return [*found, (0xE5, struct.pack("<HHHHH", 1, 0, 1, 7, 8)), (0x0A, b"")]


def xls():
    return compound(biff(xls_records()))


def in_xls(content, chance, change):
    if chance.randrange(5) == 0:
        # A number of the header, the table of sectors or the folder.
        at = chance.choice(
            (30 + 2 * chance.randrange(40), SECTOR + 4 * chance.randrange(2 * SECTOR // 4), chance.randrange(3 * SECTOR))
        )
        width = chance.choice((2, 4, 4))
        value = chance.choice((extreme(chance, width), chance.randrange(64).to_bytes(width, "little")))
        return content[:at] + value + content[at + width :]
    found, at = one_changed(xls_records(), chance, change)
    stream = biff(found)
    if found[at : at + 1] and found[at][0] == 0x85:
        # Where the sheet begins may be what was changed.
        place = sum(4 + len(body) for _, body in found[:at])
        stream = stream[: place + 4] + found[at][1] + stream[place + 4 + len(found[at][1]) :]
    return compound(stream)
