package workspace

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"crypto/sha1" // #nosec G505 -- what git names objects by
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
	"time"
)

// Bounds of what is read of a repository's objects.
const (
	maxObject  = 1 << 20 // bytes
	maxPacks   = 4096
	maxDeltas  = 64  // in the chain of one object
	maxHistory = 500 // commits read to find an old one, once, while a request waits
	minPast    = 30 * 24 * time.Hour
)

// gitObjects reads the commits in one git directory: loose ones and those in
// packs. It leaves that directory by no symbolic link and no alternate: an
// archive may hold links into another's repository. No process is started.
type gitObjects struct {
	root  *os.Root
	packs []string // their paths, without .idx
	size  int      // of the ids of its objects
	open  map[string]*gitPack
}

var errObject = errors.New("not an object that can be read")

func openObjects(git string) (*gitObjects, error) {
	dir, err := os.OpenRoot(git)
	if err != nil {
		return nil, fmt.Errorf("open a git directory: %w", err)
	}
	defer func() { _ = dir.Close() }()
	root, err := dir.OpenRoot("objects")
	if err != nil {
		return nil, fmt.Errorf("open a git directory: %w", err)
	}
	o := &gitObjects{root: root, open: make(map[string]*gitPack)}
	if list, err := root.Open("pack"); err == nil {
		entries, _ := list.ReadDir(4 * maxPacks)
		list.Close()
		for _, e := range entries {
			if name, ok := strings.CutSuffix(e.Name(), ".idx"); ok && len(o.packs) < maxPacks {
				o.packs = append(o.packs, path.Join("pack", name))
			}
		}
	}
	return o, nil
}

func (o *gitObjects) Close() {
	for _, p := range o.open {
		p.close()
	}
	_ = o.root.Close()
}

// file opens a regular file: an archive may hold pipes, which block.
func (o *gitObjects) file(name string) (*os.File, error) {
	if info, err := o.root.Stat(name); err != nil || !info.Mode().IsRegular() {
		return nil, errObject
	}
	return o.root.Open(name)
}

// gitCommit is a commit, as far as it matters here.
type gitCommit struct {
	parent string // the first one; empty: it has none
	at     time.Time
}

// holds reports whether a commit is there: it reads the object and computes its
// hash, and does not trust its name.
func (o *gitObjects) holds(hash string) bool {
	_, err := o.commit(hash)
	return err == nil
}

// past is a commit in the history of another one that most clones have: the
// newest along first parents that is a month old, else the oldest there is.
// Empty: that commit is not there.
func (o *gitObjects) past(hash string) (old string) {
	for range maxHistory {
		c, err := o.commit(hash)
		if err != nil {
			return old // a shallow clone ends
		}
		if old = hash; c.parent == "" || time.Since(c.at) >= minPast {
			return old
		}
		hash = c.parent
	}
	return old
}

func (o *gitObjects) commit(hash string) (c gitCommit, err error) {
	if !isHash(hash) {
		return c, errObject
	}
	id, _ := hex.DecodeString(hash)
	o.size = len(id)
	kind, body, err := o.object(id, 0)
	if err != nil || kind != "commit" {
		return c, errObject
	}
	if !bytes.Equal(objectID(len(id), kind, body), id) {
		return c, errObject
	}
	return parseCommit(body), nil
}

func objectID(size int, kind string, body []byte) []byte {
	head := fmt.Appendf(nil, "%s %d\x00", kind, len(body))
	if size == sha256.Size {
		sum := sha256.Sum256(append(head, body...))
		return sum[:]
	}
	sum := sha1.Sum(append(head, body...)) // #nosec G401 -- what git names objects by
	return sum[:]
}

func parseCommit(body []byte) (c gitCommit) {
	for line := range bytes.Lines(body) {
		key, value, _ := strings.Cut(strings.TrimRight(string(line), "\n"), " ")
		switch {
		case key == "": // the message follows
			return c
		case key == "parent" && c.parent == "":
			c.parent = value
		case key == "committer":
			if words := strings.Fields(value); len(words) > 1 {
				seconds, _ := strconv.ParseInt(words[len(words)-2], 10, 64)
				c.at = time.Unix(seconds, 0)
			}
		}
	}
	return c
}

// object reads a loose object, or one of a pack.
func (o *gitObjects) object(id []byte, depth int) (kind string, body []byte, err error) {
	name := hex.EncodeToString(id)
	if f, err := o.file(path.Join(name[:2], name[2:])); err == nil {
		defer f.Close()
		return looseObject(f)
	}
	for _, base := range o.packs {
		p, err := o.pack(base)
		if err != nil {
			continue
		}
		if at, ok := p.find(id); ok {
			return p.object(o, at, depth)
		}
	}
	return "", nil, errObject
}

func looseObject(r io.Reader) (kind string, body []byte, err error) {
	all, err := inflate(bufio.NewReader(r), maxObject)
	if err != nil {
		return "", nil, err
	}
	head, body, ok := bytes.Cut(all, []byte{0})
	kind, size, _ := strings.Cut(string(head), " ")
	if !ok || size != strconv.Itoa(len(body)) {
		return "", nil, errObject
	}
	return kind, body, nil
}

// inflate reads at most most bytes.
func inflate(r io.Reader, most int) ([]byte, error) {
	z, err := zlib.NewReader(r)
	if err != nil {
		return nil, errObject
	}
	defer z.Close()
	b, err := io.ReadAll(io.LimitReader(z, int64(most)+1))
	if err != nil || len(b) > most {
		return nil, errObject
	}
	return b, nil
}

func (o *gitObjects) pack(base string) (*gitPack, error) {
	if p := o.open[base]; p != nil {
		return p, p.fault
	}
	p := &gitPack{}
	p.fault = p.openIn(o, base)
	o.open[base] = p
	return p, p.fault
}

// gitPack is a pack and its index.
type gitPack struct {
	index, data *os.File
	fan         [256]uint32
	fault       error
}

func (p *gitPack) openIn(o *gitObjects, base string) (err error) {
	if p.index, err = o.file(base + ".idx"); err != nil {
		return err
	}
	if p.data, err = o.file(base + ".pack"); err != nil {
		return err
	}
	var head [8 + 256*4]byte
	if _, err := p.index.ReadAt(head[:], 0); err != nil || string(head[:8]) != "\xfftOc\x00\x00\x00\x02" {
		return errObject
	}
	for i := range p.fan {
		p.fan[i] = binary.BigEndian.Uint32(head[8+4*i:])
		if i > 0 && p.fan[i] < p.fan[i-1] {
			return errObject
		}
	}
	return nil
}

func (p *gitPack) close() {
	for _, f := range []*os.File{p.index, p.data} {
		if f != nil {
			f.Close()
		}
	}
}

// find is where an object begins in the pack.
func (p *gitPack) find(id []byte) (at int64, ok bool) {
	const names = 8 + 256*4
	size, all := int64(len(id)), int64(p.fan[255])
	low, high := int64(0), int64(p.fan[id[0]])
	if id[0] > 0 {
		low = int64(p.fan[id[0]-1])
	}
	name := make([]byte, size)
	for low < high {
		mid := (low + high) / 2
		if _, err := p.index.ReadAt(name, names+mid*size); err != nil {
			return 0, false
		}
		switch bytes.Compare(name, id) {
		case 0:
			return p.offset(names+all*(size+4), all, mid)
		case -1:
			low = mid + 1
		default:
			high = mid
		}
	}
	return 0, false
}

// offset reads that of entry n from the table that begins there.
func (p *gitPack) offset(table, all, n int64) (at int64, ok bool) {
	var b [8]byte
	if _, err := p.index.ReadAt(b[:4], table+4*n); err != nil {
		return 0, false
	}
	short := binary.BigEndian.Uint32(b[:4])
	if short < 1<<31 {
		return int64(short), true
	}
	if _, err := p.index.ReadAt(b[:], table+4*all+8*int64(short&^(1<<31))); err != nil {
		return 0, false
	}
	at = int64(binary.BigEndian.Uint64(b[:])) // #nosec G115 -- checked below
	return at, at >= 0
}

// object reads the object that begins at a place in the pack.
func (p *gitPack) object(o *gitObjects, at int64, depth int) (kind string, body []byte, err error) {
	if depth > maxDeltas {
		return "", nil, errObject
	}
	r := bufio.NewReader(io.NewSectionReader(p.data, at, 1<<40))
	c, err := r.ReadByte()
	code, size, shift := c>>4&7, uint64(c&15), 4
	for err == nil && c&0x80 != 0 && shift < 32 {
		c, err = r.ReadByte()
		size |= uint64(c&0x7f) << shift
		shift += 7
	}
	if err != nil || size > maxObject {
		return "", nil, errObject
	}
	switch code {
	case 1:
		body, err = inflate(r, int(size)) // #nosec G115 -- at most maxObject
		return "commit", body, err
	case 6: // a delta to an object before it in the pack
		back, err := backOffset(r)
		if err != nil || back <= 0 || back > at {
			return "", nil, errObject
		}
		if kind, body, err = p.object(o, at-back, depth+1); err != nil {
			return "", nil, err
		}
	case 7: // a delta to an object that it names
		base := make([]byte, o.size)
		if _, err = io.ReadFull(r, base); err != nil {
			return "", nil, errObject
		}
		if kind, body, err = o.object(base, depth+1); err != nil {
			return "", nil, err
		}
	default: // nothing that a commit is made of
		return "", nil, errObject
	}
	delta, err := inflate(r, int(size)) // #nosec G115 -- at most maxObject
	if err != nil {
		return "", nil, err
	}
	body, err = applyDelta(body, delta)
	return kind, body, err
}

// backOffset reads how far before a delta its base begins.
func backOffset(r io.ByteReader) (back int64, err error) {
	c, err := r.ReadByte()
	back = int64(c & 0x7f)
	for err == nil && c&0x80 != 0 && back < 1<<48 {
		c, err = r.ReadByte()
		back = (back+1)<<7 | int64(c&0x7f)
	}
	return back, err
}

// applyDelta makes an object of a base and a delta to it.
func applyDelta(base, delta []byte) ([]byte, error) {
	size := func() uint64 {
		n, used := binary.Uvarint(delta)
		if used <= 0 {
			n, used = maxObject+1, len(delta)
		}
		delta = delta[used:]
		return n
	}
	from, to := size(), size()
	if from != uint64(len(base)) || to > maxObject {
		return nil, errObject
	}
	out := make([]byte, 0, to)
	for len(delta) > 0 {
		op := delta[0]
		delta = delta[1:]
		if op&0x80 == 0 { // so many bytes of the delta
			n := int(op)
			if n == 0 || n > len(delta) {
				return nil, errObject
			}
			out, delta = append(out, delta[:n]...), delta[n:]
		} else { // a part of the base
			var where [7]byte
			for i := range where {
				if op&(1<<i) != 0 {
					if len(delta) == 0 {
						return nil, errObject
					}
					where[i], delta = delta[0], delta[1:]
				}
			}
			start := uint64(binary.LittleEndian.Uint32(where[:4]))
			n := uint64(where[4]) | uint64(where[5])<<8 | uint64(where[6])<<16
			if n == 0 {
				n = 1 << 16
			}
			if start+n > uint64(len(base)) {
				return nil, errObject
			}
			out = append(out, base[start:start+n]...)
		}
		if uint64(len(out)) > to {
			return nil, errObject
		}
	}
	if uint64(len(out)) != to {
		return nil, errObject
	}
	return out, nil
}
