package sentence

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func model(t *testing.T) *universal {
	t.Helper()
	m, err := loadUniversal(file)
	must(t, err)
	return m
}

func likeness(t *testing.T, encode func(context.Context, string) ([]float32, error), a, b string) (sum float64) {
	t.Helper()
	va, err := encode(t.Context(), a)
	must(t, err)
	vb, err := encode(t.Context(), b)
	must(t, err)
	for i, v := range va {
		sum += float64(v) * float64(vb[i])
	}
	return sum
}

// TestEncode_Reference compares likenesses with the source in Python, whose weights have more
// bits.
func TestEncode_Reference(t *testing.T) {
	m := model(t)
	for _, c := range []struct {
		a, b string
		want float64
	}{
		{"Where is the car?", "I sold my automobile in spring.", 0.29},
		{"Wie heißt meine Katze?", "My cat Pixel jumped on the table.", 0.39},
		{"Wann ist die Prüfung?", "級の試験は2月8日です", 0.52},
		{"¿qué día mandamos los paquetes?", "The courier takes our parcels on Wednesdays.", 0.55},
		{"Кто отвечает за базу данных?", "Anna ist für die Datenbank zuständig.", 0.41},
		{"Where is the car?", "Use tabs, never spaces.", 0.01},
		{"what is the capital of Peru?", "The invoice was paid yesterday.", 0.02},
		{"테스트 다시 돌려줘", "run the tests again", 0.77},
	} {
		if got := likeness(t, m.encode, c.a, c.b); math.Abs(got-c.want) > 0.2 {
			t.Errorf("likeness of %q and %q = %.2f, want %.2f", c.a, c.b, got, c.want)
		}
	}
}

// TestSplit_Reference compares pieces with the source in Python.
func TestSplit_Reference(t *testing.T) {
	m := model(t)
	for text, want := range map[string]string{
		"Where is the car?": "▁Where|▁is|▁the|▁car|?",
		"  \uff26\uff55\uff4c\uff4c\u3000width\tand\nlines ":                        "▁Full|▁width|▁and|▁lines",
		"Pr\u00fcfungstermin":                                                       "▁Prüfung|s|termin",
		"\u8a66\u9a13\u306f2\u67088\u65e5\u3067\u3059":                              "▁|試験|は|2|月|8|日|です",
		"\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645": "▁مر|حب|ا|▁بال|عالم",
		"git push --force-with-lease":                                               "▁git|▁push|▁--|force|-|with|-|le|ase",
		"zero\u200bwidth":                                                           "▁zero|▁width",
	} {
		rows := m.pieces.split(text, maxPieces)
		var got []string
		for _, row := range rows[1 : len(rows)-1] {
			if row < firstPiece {
				got = append(got, "?")
				continue
			}
			got = append(got, m.pieces.at(row-firstPiece))
		}
		if s := strings.Join(got, "|"); s != want || rows[0] != begin || rows[len(rows)-1] != end {
			t.Errorf("split(%q) = %s, want %s", text, s, want)
		}
	}
}

// TestEncode_AnyText covers empty texts, invalid bytes and long texts.
func TestEncode_AnyText(t *testing.T) {
	m := model(t)
	for _, text := range []string{"", " ", "\xff\xfe", "a\xf0\x9f", "\x00", "🫠🫠", "▁", strings.Repeat("x", 100_000), strings.Repeat("word ", 10_000)} {
		v, err := m.encode(t.Context(), text)
		must(t, err)
		length := 0.0
		for _, x := range v {
			length += float64(x) * float64(x)
		}
		if len(v) != width || !(math.Abs(length-1) < 1e-3) {
			t.Errorf("Encode(%.20q) has %d dimensions and the length %v, want %d and 1", text, len(v), length, width)
		}
	}
	if n := len(m.pieces.split(strings.Repeat("word ", 10_000), maxPieces)); n != maxPieces {
		t.Errorf("a long text has %d pieces, want %d", n, maxPieces)
	}
}

// TestTable_LastRows checks that the rows of the last blocks are decoded.
func TestTable_LastRows(t *testing.T) {
	m := model(t)
	all := len(m.table.classes)
	for row := all - 4*blockRows; row < all; row++ {
		var out [width]float32
		if m.table.row(row, out[:]); out == [width]float32{} && row < all-blockRows {
			t.Errorf("row %d of %d is empty", row, all)
		}
	}
}

// TestEncode_AnyProcessor compares vectors with those of a processor without wide instructions.
func TestEncode_AnyProcessor(t *testing.T) {
	const text = "Where did we want to meet the customer on Thursday?"
	want, err := model(t).encode(t.Context(), text)
	must(t, err)
	onAnyProcessor(t)
	got, err := model(t).encode(t.Context(), text)
	must(t, err)
	for i, v := range got {
		if math.Abs(float64(v-want[i])) > 1e-3 {
			t.Fatalf("value %d = %v, want %v", i, v, want[i])
		}
	}
}

func TestEncode_Canceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := model(t).encode(ctx, "Where is the car?"); !errors.Is(err, context.Canceled) {
		t.Errorf("Encode = %v, want %v", err, context.Canceled)
	}
}

// TestLoad_NoCopy: an unused model takes no memory.
func TestLoad_NoCopy(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m := model(t)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 64<<10 {
		t.Errorf("Load allocates %d bytes, want at most 64 KiB", n)
	}
	runtime.KeepAlive(m)
}

// TestLoad_Damaged covers files of other versions and lengths.
func TestLoad_Damaged(t *testing.T) {
	for name, bad := range map[string]string{
		"empty": "", "another version": "usem3\x00\x00\x02" + file[len(magic):], "cut": file[:len(file)-1], "longer": file + "x", "head only": file[:20],
	} {
		if _, err := loadUniversal(bad); !errors.Is(err, errFile) {
			t.Errorf("%s: load = %v, want %v", name, err, errFile)
		}
	}
}

// TestFile checks the order of the pieces, on which the search for prefixes relies, and the
// classes and blocks of the table.
func TestFile(t *testing.T) {
	m := model(t)
	for i := 1; i < m.pieces.count; i++ {
		if m.pieces.at(i-1) >= m.pieces.at(i) {
			t.Fatalf("piece %d is %q, after %q", i, m.pieces.at(i), m.pieces.at(i-1))
		}
		if s := m.pieces.at(i); len(s) > longestPiece || strings.LastIndex(s, space) > 0 {
			t.Errorf("piece %d is %q, want at most %d bytes, and a space only at the begin", i, s, longestPiece)
		}
	}
	classes := slices.Max([]byte(m.table.classes))
	if n := len(m.table.values) / m.table.symbols; int(classes) >= n || m.table.symbols > 255 {
		t.Errorf("the table has class %d of %d, and %d symbols", classes, n, m.table.symbols)
	}
	for i := range len(m.table.starts)/4 - 1 {
		if uint32At(m.table.starts, i) >= uint32At(m.table.starts, i+1) {
			t.Fatalf("block %d is empty", i)
		}
	}
}

// TestProduct_AnyProcessor compares the products of this processor with those of every processor.
func TestProduct_AnyProcessor(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const in, out, inStep, outStep = 192, 8, 64, 11
	x := matrix{in: in, out: out, step: in + 3, weights: make([]int8, (in+3)*out)}
	for i := range x.weights {
		x.weights[i] = int8(random.Int()) //nolint:gosec // any bits
	}
	for o := range out {
		x.scale = append(x.scale, float32(o)/16-0.1)
	}
	for n := 1; n <= 9; n++ {
		long := fixed{values: make([]int16, (n-1)*inStep+in)}
		short := fixed{values: make([]int16, len(long.values)), bytes: make([]int8, len(long.values))}
		for i := range long.values {
			long.values[i] = int16(random.Int()) //nolint:gosec // any bits
			short.values[i] = int16(random.IntN(255) - 127)
		}
		shorten(short.bytes, short.values)
		for r := range n {
			long.units = append(long.units, float32(r+1)/4)
			short.sums = append(short.sums, shorten(make([]int8, in), short.values[r*inStep:][:in]))
		}
		short.units = long.units
		for _, rows := range []fixed{long, short} {
			start := make([]float32, (n-1)*outStep+out)
			for i := range start {
				start[i] = float32(i)
			}
			got, want := slices.Clone(start), slices.Clone(start)
			x.addTo(got, outStep, rows, inStep, n)
			t.Run("in Go", func(t *testing.T) {
				onAnyProcessor(t)
				x.addTo(want, outStep, rows, inStep, n)
			})
			for i := range got {
				if math.Abs(float64(got[i]-want[i])) > 1e-6*math.Abs(float64(want[i])) {
					t.Fatalf("bytes %v: value %d of %d rows = %v, want %v", rows.bytes != nil, i, n, got[i], want[i])
				}
			}
		}
	}
}

// TestOperations_AnyProcessor compares the operations of this processor with those of every
// processor.
func TestOperations_AnyProcessor(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{32, 96, 256} {
		x := make([]float32, n)
		for i := range x {
			x[i] = 100*random.Float32() - 50
		}
		run := func(o *operations) (all []float32) {
			d, rounded := slices.Clone(x), make([]int16, n)
			o.addProducts(d[:32], x, n-32, []float32{2, -0.5})
			o.round(rounded, x, 600)
			all = append(d, o.largest(x))
			for _, v := range rounded {
				all = append(all, float32(v))
			}
			return all
		}
		got, want := run(&floats), run(&inGo)
		for i := range want {
			if math.Abs(float64(got[i]-want[i])) > 1e-4*max(1, math.Abs(float64(want[i]))) {
				t.Errorf("%d values: result %d = %v, want %v", n, i, got[i], want[i])
			}
		}
	}
}

// TestDot checks the dot product of vectors of any length, with the largest values.
func TestDot(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 31, 32, 33, 384, 512, 1000} {
		a, b, want := make([]int8, n), make([]int8, n), int32(0)
		for i := range n {
			a[i], b[i] = int8(r.IntN(256)-128), int8(r.IntN(256)-128)
			if i%2 == 0 {
				a[i], b[i] = -128, -128
			}
			want += int32(a[i]) * int32(b[i])
		}
		if got := Dot(a, b); got != want {
			t.Errorf("%d values: got %d, want %d", n, got, want)
		}
	}
}
