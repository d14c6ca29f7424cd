"""Numbers as tables, axes and the page write them."""


def number(value):
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def bytes_or_count(x):
    for size, unit in ((1 << 20, "Mi"), (1 << 10, "Ki")):
        if x >= size and x % size == 0:
            return f"{x / size:.0f} {unit}"
    return f"{x:.0f}"
