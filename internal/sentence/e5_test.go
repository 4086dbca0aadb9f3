package sentence

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

var must = helptest.Must

// loadedE5 returns the model in the program.
func loadedE5(t *testing.T) *e5 {
	t.Helper()
	if usable.long == nil {
		t.Skip("this processor is too slow for the model")
	}
	m, err := loadE5(e5File)
	must(t, err)
	return m
}

// exactLayer has the weights of a layer with full precision.
type exactLayer struct {
	weights map[string][][]float64 // of each output
	bias    map[string][]float64
}

// newLayers returns a layer of random weights, and the same with full precision.
func newLayers(random *rand.Rand) (*e5Layer, *exactLayer) {
	l, exact := &e5Layer{}, &exactLayer{make(map[string][][]float64), make(map[string][]float64)}
	for _, x := range []struct {
		*layer
		name    string
		in, out int
	}{{&l.asked, "asked", e5Width, 3 * e5Width}, {&l.out, "out", e5Width, e5Width}, {&l.wide, "wide", e5Width, e5Inner}, {&l.narrow, "narrow", e5Inner, e5Width}} {
		x.matrix = matrix{in: x.in, out: x.out, step: x.in}
		for range x.out {
			scale, bias := float32(random.Float64()/2000), float32(random.NormFloat64())
			row := make([]float64, x.in)
			for i := range row {
				w := int8(random.IntN(255) - 127)
				x.weights, row[i] = append(x.weights, w), float64(w)*float64(scale)
			}
			x.scale, x.bias = append(x.scale, scale), append(x.bias, bias)
			exact.weights[x.name], exact.bias[x.name] = append(exact.weights[x.name], row), append(exact.bias[x.name], float64(bias))
		}
	}
	for name, r := range map[string]*rescaling{"attended": &l.attended, "done": &l.done} {
		for range e5Width {
			gain, bias := float32(1+random.NormFloat64()/10), float32(random.NormFloat64())
			r.gain, r.bias = append(r.gain, gain), append(r.bias, bias)
			exact.bias[name+" gain"], exact.bias[name] = append(exact.bias[name+" gain"], float64(gain)), append(exact.bias[name], float64(bias))
		}
	}
	return l, exact
}

func (l *exactLayer) of(x []float64, name string) []float64 {
	out := append([]float64{}, l.bias[name]...)
	for o := range out {
		for i, v := range x {
			out[o] += v * l.weights[name][o][i]
		}
	}
	return out
}

func (l *exactLayer) rescaled(x, add []float64, name string) []float64 {
	out, mean, square := make([]float64, len(x)), 0.0, 0.0
	for i := range x {
		out[i] = x[i] + add[i]
		mean += out[i] / float64(len(x))
	}
	for _, v := range out {
		square += (v - mean) * (v - mean) / float64(len(x))
	}
	for i, v := range out {
		out[i] = (v-mean)/math.Sqrt(square)*l.bias[name+" gain"][i] + l.bias[name][i]
	}
	return out
}

// apply computes the layer as the paper of the model says.
func (l *exactLayer) apply(x [][]float64) (out [][]float64) {
	var asked [][]float64
	for _, r := range x {
		asked = append(asked, l.of(r, "asked"))
	}
	const size = e5Width / e5Heads
	for r := range x {
		mixed := make([]float64, e5Width)
		for head := 0; head < e5Width; head += size {
			weights, whole := make([]float64, len(x)), 0.0
			for o := range x {
				for i := head; i < head+size; i++ {
					weights[o] += asked[r][i] * asked[o][e5Width+i] / math.Sqrt(size)
				}
				weights[o] = math.Exp(weights[o])
				whole += weights[o]
			}
			for o := range x {
				for i := head; i < head+size; i++ {
					mixed[i] += weights[o] / whole * asked[o][2*e5Width+i]
				}
			}
		}
		row := l.rescaled(x[r], l.of(mixed, "out"), "attended")
		wide := l.of(row, "wide")
		for i, v := range wide {
			wide[i] = v / 2 * (1 + math.Erf(v/math.Sqrt2))
		}
		out = append(out, l.rescaled(row, l.of(wide, "narrow"), "done"))
	}
	return out
}

// TestE5Layer_Precision compares a layer with a computation of full precision.
func TestE5Layer_Precision(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 7} {
		l, exact := newLayers(random)
		var x []float32
		var rows [][]float64
		for range n {
			var row []float64
			for range e5Width {
				v := float32(random.NormFloat64())
				x, row = append(x, v), append(row, float64(v))
			}
			rows = append(rows, row)
		}
		l.apply(x, new(scratch))
		for r, row := range exact.apply(rows) {
			for i, want := range row {
				if got := float64(x[r*e5Width+i]); math.Abs(got-want) > 0.05 { // values are rounded to bytes
					t.Fatalf("%d rows: value %d of row %d = %.3f, want %.3f", n, i, r, got, want)
				}
			}
		}
	}
}

// TestE5_Languages checks that a question is more like its answer than like another statement, in
// languages that the Universal Sentence Encoder does not know.
func TestE5_Languages(t *testing.T) {
	m := loadedE5(t)
	for _, c := range []struct{ question, answer, other string }{
		{"на якому порту слухає брокер", "mqtt брокер слухає на порту 1884", "наступна нарада у вівторок"},
		{"mikä on kissani nimi", "Kissani nimi on Pulla.", "Palaveri on tiistaina."},
		{"con mèo của tôi tên là gì", "Con mèo của tôi tên là Bánh.", "Cuộc họp là thứ Ba."},
		{"var är nyckeln till laddskåpet", "vaktmästaren har den som öppnar elskåpet", "mötet är på tisdag"},
		{"আমার বিড়ালের নাম কী", "আমার বিড়ালের নাম মিশু", "সভা মঙ্গলবার"},
		{"Wo ist der Schlüssel?", "The key hangs in the hall.", "The meeting is on Tuesday."},
	} {
		right, wrong := likeness(t, m.encode, c.question, c.answer), likeness(t, m.encode, c.question, c.other)
		if right < wrong+0.03 {
			t.Errorf("%q is like its answer: %.3f, and like another statement: %.3f", c.question, right, wrong)
		}
	}
}

// TestModel_AnyText covers empty texts, invalid bytes and long texts.
func TestModel_AnyText(t *testing.T) {
	m, err := Load()
	must(t, err)
	for _, text := range []string{"", " ", "\xff\xfe", "a\xf0\x9f", "\x00", "🫠🫠", "▁", strings.Repeat("x", 100_000), strings.Repeat("word ", 10_000)} {
		v, err := m.Encode(t.Context(), text)
		must(t, err)
		length := 0.0
		for _, x := range v {
			length += float64(x) * float64(x)
		}
		if len(v) != Dimensions || !(math.Abs(length-1) < 1e-3) {
			t.Errorf("Encode(%.20q) has %d dimensions and the length %v, want %d and 1", text, len(v), length, Dimensions)
		}
	}
}

// TestLoad_SlowProcessor checks that a processor that would take too long gets no model.
func TestLoad_SlowProcessor(t *testing.T) {
	before := usable
	t.Cleanup(func() { usable = before })
	usable = kernels{}
	if _, err := Load(); !errors.Is(err, ErrProcessor) {
		t.Errorf("Load = %v, want %v", err, ErrProcessor)
	}
}

func TestE5_Canceled(t *testing.T) {
	m := loadedE5(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.encode(ctx, "Where is the car?"); !errors.Is(err, context.Canceled) {
		t.Errorf("encode = %v, want %v", err, context.Canceled)
	}
}

// TestLoadE5_Damaged covers files of other versions and lengths.
func TestLoadE5_Damaged(t *testing.T) {
	for name, bad := range map[string]string{
		"empty": "", "another version": "e5s\x00\x00\x00\x00\x02" + e5File[len(e5Magic):], "cut": e5File[:len(e5File)-1], "longer": e5File + "x",
		"head only": e5File[:20], "many layers": e5Magic + "\xff\xff\xff\xff" + e5File[len(e5Magic)+4:], "half": e5File[:len(e5File)/2],
	} {
		if _, err := loadE5(bad); !errors.Is(err, errE5) {
			t.Errorf("%s: loadE5 = %v, want %v", name, err, errE5)
		}
	}
}

// TestE5File checks the order of the pieces, on which the search for prefixes relies.
func TestE5File(t *testing.T) {
	m := loadedE5(t)
	for i := 1; i < m.pieces.count; i++ {
		if m.pieces.at(i-1) >= m.pieces.at(i) {
			t.Fatalf("piece %d is %q, after %q", i, m.pieces.at(i), m.pieces.at(i-1))
		}
	}
}

func BenchmarkModel(b *testing.B) {
	m, err := Load()
	must(b, err)
	for b.Loop() {
		must(b, helptest.ErrorOf(m.Encode(b.Context(), "Where did we want to meet the customer on Thursday?")))
	}
}
