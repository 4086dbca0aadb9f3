package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"io"
	"slices"
	"strings"
	"time"
)

// file is an entry of an archive. A directory's name ends with a slash.
type file struct {
	name  string
	mode  int64
	owner int
	body  []byte
}

// under returns the files with dir before their names.
func under(dir string, files []file) []file {
	moved := slices.Clone(files)
	for i := range moved {
		moved[i].name = dir + moved[i].name
	}
	return moved
}

// writeTar writes the files in the order of their names, all with the same time.
func writeTar(w io.Writer, at time.Time, files []file) error {
	t := tar.NewWriter(w)
	for _, f := range sorted(files) {
		h := &tar.Header{Name: f.name, Mode: f.mode, Uid: f.owner, Gid: f.owner, Size: int64(len(f.body)), ModTime: at, Typeflag: tar.TypeReg}
		if strings.HasSuffix(f.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(f.body); err != nil {
			return err
		}
	}
	return t.Close()
}

func tarGz(at time.Time, files []file) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := writeTar(z, at, files); err != nil {
		return nil, err
	}
	err := z.Close()
	return b.Bytes(), err
}

func zipped(at time.Time, files []file) ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range sorted(files) {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at, CreatorVersion: 3 << 8} // Unix
		h.ExternalAttrs = uint32(0o100000|f.mode) << 16
		w, err := z.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f.body); err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return b.Bytes(), err
}

func sorted(files []file) []file {
	return slices.SortedFunc(slices.Values(files), func(a, b file) int { return cmp.Compare(a.name, b.name) })
}
