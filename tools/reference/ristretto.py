"""The group ristretto255 (RFC 9496), on Python's integers: encoding, decoding, hashing to the group, multiples."""

from functools import lru_cache

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
SQRT_M1 = pow(2, (P - 1) // 4, P)
ONE_MINUS_D_SQ = (1 - D * D) % P
D_MINUS_ONE_SQ = (D - 1) ** 2 % P
BYTES = 32


def _negative(x):
    return x & 1


def _abs(x):
    return P - x if x & 1 else x


def sqrt_ratio(u, v):
    """Whether u/v is a square, and its root or that of SQRT_M1·u/v, not negative."""
    r = u * pow(v, 3, P) * pow(u * pow(v, 7, P), (P - 5) // 8, P) % P
    check = v * r * r % P
    u %= P
    if check in (-u % P, -u * SQRT_M1 % P):
        r = r * SQRT_M1 % P
    return check in (u, -u % P), _abs(r)


_root = sqrt_ratio(1, (-1 - D) % P)
INVSQRT_A_MINUS_D = _root[1]
# RFC 9496 names the root that is odd.
SQRT_AD_MINUS_ONE = next(
    r for r in (sqrt_ratio((-1 * D - 1) % P, 1)[1], -sqrt_ratio((-1 * D - 1) % P, 1)[1] % P) if r & 1
)


def add(p, q):
    x1, y1, z1, t1 = p
    x2, y2, z2, t2 = q
    a, b = (y1 - x1) * (y2 - x2), (y1 + x1) * (y2 + x2)
    c, d = 2 * D * t1 * t2 % P, 2 * z1 * z2
    e, f, g, h = (b - a) % P, (d - c) % P, (d + c) % P, (b + a) % P
    return e * f % P, g * h % P, f * g % P, e * h % P


def double(p):
    x, y, z, _ = p
    a, b = x * x % P, y * y % P
    h = a + b
    e = (h - (x + y) ** 2) % P
    g = a - b
    f = 2 * z * z + g
    return e * f % P, g * h % P, f * g % P, e * h % P


def negate(p):
    x, y, z, t = p
    return -x % P, y, z, -t % P


IDENTITY = (0, 1, 1, 0)


def multiply(scalar, point):
    table = [IDENTITY, point]
    while len(table) < 16:
        table.append(add(table[-1], point))
    out = IDENTITY
    for digit in f"{scalar % ORDER:x}":
        if out != IDENTITY:
            out = double(double(double(double(out))))
        out = add(out, table[int(digit, 16)])
    return out


@lru_cache(maxsize=8)
def _multiples(point):
    """For each hexadecimal digit of a scalar, the lowest first, the point's multiples by its sixteen values."""
    out = []
    for _ in range(64):
        table = [IDENTITY]
        while len(table) < 16:
            table.append(add(table[-1], point))
        out.append(table)
        point = add(table[-1], point)
    return out


def multiply_often(scalar, point):
    """`multiply`, for a point that is multiplied many times."""
    out = IDENTITY
    for digit, table in zip(reversed(f"{scalar % ORDER:x}"), _multiples(point)):
        out = add(out, table[int(digit, 16)])
    return out


def decode(data):
    """The point, or None: not 32 bytes, not canonical, or no element of the group."""
    s = int.from_bytes(data, "little")
    if len(data) != BYTES or s >= P or _negative(s):
        return None
    ss = s * s % P
    u1, u2 = (1 - ss) % P, (1 + ss) % P
    v = (-D * u1 * u1 - u2 * u2) % P
    square, inverse = sqrt_ratio(1, v * u2 * u2 % P)
    dx = inverse * u2 % P
    dy = inverse * dx * v % P
    x = _abs(2 * s * dx % P)
    y = u1 * dy % P
    t = x * y % P
    return (x, y, 1, t) if square and not _negative(t) and y else None


def encode(p):
    x, y, z, t = p
    u1, u2 = (z + y) * (z - y) % P, x * y % P
    _, inverse = sqrt_ratio(1, u1 * u2 * u2 % P)
    d1, d2 = inverse * u1 % P, inverse * u2 % P
    z_inverse = d1 * d2 * t % P
    if _negative(t * z_inverse % P):
        x, y, d2 = y * SQRT_M1 % P, x * SQRT_M1 % P, d1 * INVSQRT_A_MINUS_D % P
    if _negative(x * z_inverse % P):
        y = -y % P
    return _abs(d2 * (z - y) % P).to_bytes(BYTES, "little")


def _map(data):
    t = int.from_bytes(data, "little") % 2**255 % P
    r = SQRT_M1 * t * t % P
    u = (r + 1) * ONE_MINUS_D_SQ % P
    v = (-1 - r * D) * (r + D) % P
    square, s = sqrt_ratio(u, v)
    c = -1
    if not square:
        s, c = -_abs(s * t % P) % P, r
    n = (c * (r - 1) * D_MINUS_ONE_SQ - v) % P
    w0, w1, w2, w3 = 2 * s * v % P, n * SQRT_AD_MINUS_ONE % P, (1 - s * s) % P, (1 + s * s) % P
    return w0 * w3 % P, w2 * w1 % P, w1 * w3 % P, w0 * w2 % P


def from_uniform(data):
    """The element that 64 uniform bytes stand for (section 4.3.4)."""
    return add(_map(data[:32]), _map(data[32:]))


_y = 4 * pow(5, -1, P) % P
_x = _abs(sqrt_ratio((_y * _y - 1) % P, (D * _y * _y + 1) % P)[1])
GENERATOR = (_x, _y, 1, _x * _y % P)
