package sentence

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// testLayers is the number of layers of e5File.
const testLayers = 2

// e5File is a model of random weights in the form of the real one, with fewer layers.
type e5File struct {
	pieces  []string
	tensors map[string][]float64 // decoded
	bytes   []byte
}

// newE5File makes a file. The vectors of a piece are rows of emb.word.
func newE5File() *e5File {
	f := &e5File{pieces: []string{"<s>", "<pad>", "</s>", "<unk>", "▁query", ":", "▁the", "▁cat", "s", "▁", "c", "a", "t", "▁дом", "<mask>"}, tensors: make(map[string][]float64)}
	random := rand.New(rand.NewPCG(1, 2))
	var directory, body bytes.Buffer
	add := func(name string, n, in int) {
		values := make([]float64, n)
		at := uint64(body.Len()) //nolint:gosec // small
		for i := 0; i < n; i += max(1, in) {
			if in == 0 { // as numbers of 32 bits
				v := float32(random.NormFloat64())
				if strings.HasSuffix(name, "ln.w") {
					v = 1 + v/10
				}
				values[i] = float64(v)
				_ = binary.Write(&body, binary.LittleEndian, v)
				continue
			}
			for from := i; from < i+in; from += blockSize {
				scale := uint16(0x2800 + random.IntN(0x400)) //nolint:gosec // 1/32 to 1/16
				_ = binary.Write(&body, binary.LittleEndian, scale)
				for k := range blockSize / 2 {
					b := byte(random.IntN(256))
					body.WriteByte(b)
					unit := (1 + float64(scale&0x3ff)/0x400) / 32
					values[from+k], values[from+k+blockSize/2] = unit*float64(int(b&15)-8), unit*float64(int(b>>4)-8)
				}
			}
		}
		f.tensors[name] = values
		_ = binary.Write(&directory, binary.LittleEndian, uint16(len(name))) //nolint:gosec // short
		directory.WriteString(name)
		_ = binary.Write(&directory, binary.LittleEndian, struct {
			Type     uint8
			Count    uint32
			At, Size uint64
		}{0, uint32(n), at, uint64(body.Len()) - at}) //nolint:gosec // small
	}
	const d = E5Dimensions
	add("emb.word", len(f.pieces)*d, d)
	add("emb.pos", e5Longest*d, 0)
	add("emb.type", 2*d, 0)
	add("emb.ln.w", d, 0)
	add("emb.ln.b", d, 0)
	for l := range testLayers {
		p := "l" + strconv.Itoa(l) + "."
		for _, m := range []struct {
			name    string
			in, out int
		}{{"q", d, d}, {"k", d, d}, {"v", d, d}, {"ao", d, d}, {"fi", d, e5Inner}, {"fo", e5Inner, d}} {
			add(p+m.name+".w", m.in*m.out, m.in)
			add(p+m.name+".b", m.out, 0)
		}
		for _, name := range []string{"aln", "oln"} {
			add(p+name+".w", d, 0)
			add(p+name+".b", d, 0)
		}
	}
	texts := strings.Join(f.pieces, "")
	h := e5Header{Dimensions: d, Layers: testLayers, Heads: e5Heads, Inner: e5Inner, Rows: int32(len(f.pieces)), Longest: e5Longest, Types: 2, Epsilon: epsilon, Block: blockSize, //nolint:gosec // few
		Pieces: int32(len(f.pieces)), Begin: e5Begin, End: e5End, Pad: 1, Unknown: e5Unknown, Texts: uint64(len(texts))} //nolint:gosec // few
	copy(h.Magic[:], e5Magic)
	var out bytes.Buffer
	_ = binary.Write(&out, binary.LittleEndian, h)
	at := uint32(0)
	for _, p := range append([]string{""}, f.pieces...) {
		at += uint32(len(p)) //nolint:gosec // short
		_ = binary.Write(&out, binary.LittleEndian, at)
	}
	for i := range f.pieces {
		_ = binary.Write(&out, binary.LittleEndian, -float32(i))
	}
	out.WriteString(texts)
	_ = binary.Write(&out, binary.LittleEndian, [2]uint32{})
	_ = binary.Write(&out, binary.LittleEndian, uint32(len(f.tensors))) //nolint:gosec // few
	start := out.Len() + directory.Len()
	list := directory.Bytes()
	for i := 0; i < len(list); { // offsets are from the begin of the file
		i += 2 + int(binary.LittleEndian.Uint16(list[i:])) + 5
		binary.LittleEndian.PutUint64(list[i:], binary.LittleEndian.Uint64(list[i:])+uint64(start)) //nolint:gosec // small
		i += 16
	}
	f.bytes = append(append(out.Bytes(), list...), body.Bytes()...)
	return f
}

// open opens a file with these bytes.
func openE5(t *testing.T, b []byte) (*E5, error) {
	t.Helper()
	if !hasKernel() {
		t.Skip("this processor is too slow for the model")
	}
	path := filepath.Join(t.TempDir(), "e5.bin")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := OpenE5(path)
	if err == nil {
		t.Cleanup(func() { _ = m.Close() })
	}
	return m, err
}

// vector computes the vector of pieces as the paper of the model says, with full precision.
func (f *e5File) vector(rows []int) []float64 {
	const d = E5Dimensions
	rescaled := func(x []float64, name string) {
		mean, square := 0.0, 0.0
		for _, v := range x {
			mean += v / d
		}
		for _, v := range x {
			square += (v - mean) * (v - mean) / d
		}
		for i := range x {
			x[i] = (x[i]-mean)/math.Sqrt(square+epsilon)*f.tensors[name+".w"][i] + f.tensors[name+".b"][i]
		}
	}
	product := func(x []float64, name string) []float64 {
		w, out := f.tensors[name+".w"], append([]float64{}, f.tensors[name+".b"]...)
		for o := range out {
			for i, v := range x {
				out[o] += v * w[o*len(x)+i]
			}
		}
		return out
	}
	var x [][]float64
	for i, row := range rows {
		v := make([]float64, d)
		for k := range v {
			v[k] = f.tensors["emb.word"][row*d+k] + f.tensors["emb.pos"][i*d+k] + f.tensors["emb.type"][k]
		}
		rescaled(v, "emb.ln")
		x = append(x, v)
	}
	for l := range testLayers {
		p := "l" + strconv.Itoa(l) + "."
		var q, k, v, next [][]float64
		for _, r := range x {
			q, k, v = append(q, product(r, p+"q")), append(k, product(r, p+"k")), append(v, product(r, p+"v"))
		}
		for r := range x {
			mixed := make([]float64, d)
			for head := 0; head < d; head += d / e5Heads {
				weights, whole := make([]float64, len(x)), 0.0
				for o := range x {
					for i := head; i < head+d/e5Heads; i++ {
						weights[o] += q[r][i] * k[o][i] / math.Sqrt(d/e5Heads)
					}
					weights[o] = math.Exp(weights[o])
					whole += weights[o]
				}
				for o := range x {
					for i := head; i < head+d/e5Heads; i++ {
						mixed[i] += weights[o] / whole * v[o][i]
					}
				}
			}
			row := product(mixed, p+"ao")
			for i := range row {
				row[i] += x[r][i]
			}
			rescaled(row, p+"aln")
			wide := product(row, p+"fi")
			for i, v := range wide {
				wide[i] = v / 2 * (1 + math.Erf(v/math.Sqrt2))
			}
			for i, v := range product(wide, p+"fo") {
				row[i] += v
			}
			rescaled(row, p+"oln")
			next = append(next, row)
		}
		x = next
	}
	out, length := make([]float64, d), 0.0
	for _, r := range x {
		for i, v := range r {
			out[i] += v
		}
	}
	for _, v := range out {
		length += v * v
	}
	for i := range out {
		out[i] /= math.Sqrt(length)
	}
	return out
}

// TestE5_Encode compares vectors with a computation of full precision. The rows include the prefix.
func TestE5_Encode(t *testing.T) {
	f := newE5File()
	m, err := openE5(t, f.bytes)
	if err != nil {
		t.Fatal(err)
	}
	for text, rows := range map[string][]int{
		"the cats":     {0, 4, 5, 6, 7, 8, 2},
		" \uff43at \n": {0, 4, 5, 7, 2},
		"дом ctz":      {0, 4, 5, 13, 9, 10, 12, 3, 2},
		"":             {0, 4, 5, 2},
		"<s>":          {0, 4, 5, 9, 3, 8, 3, 2},
	} {
		got, err := m.Encode(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		cosine := 0.0
		for i, v := range f.vector(rows) {
			cosine += v * float64(got[i])
		}
		if cosine < 0.99 {
			t.Errorf("the vector of %q has the likeness %.3f to that of full precision, want 0.99", text, cosine)
		}
	}
	long, err := m.Encode(t.Context(), strings.Repeat("the cats ", 10_000))
	if err != nil || len(long) != E5Dimensions {
		t.Errorf("a long text: %d dimensions, %v", len(long), err)
	}
}

// TestOpenE5_Damaged checks that a file of another form, or a part of a file, is refused.
func TestOpenE5_Damaged(t *testing.T) {
	f := newE5File()
	whole := f.bytes
	for _, n := range []int{0, 7, 40, 90, 150, 300, 2000, len(whole) / 2, len(whole) - 1} {
		if _, err := openE5(t, whole[:n]); err == nil {
			t.Errorf("the first %d of %d bytes were taken for the model", n, len(whole))
		}
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 100 { // for any head, no panic
		b := bytes.Clone(whole[:4000])
		for range 1 + random.IntN(8) {
			b[random.IntN(len(b))] = byte(random.IntN(256))
		}
		if _, err := openE5(t, append(b, whole[4000:20_000]...)); err == nil {
			t.Fatal("a part of a file was taken for the model")
		}
	}
	if _, err := OpenE5(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a missing file was taken for the model")
	}
}
