// Package workspace finds the repository that a directory of this machine
// belongs to, and decides whether what the repository says of its origin is
// true: any archive can name anybody's remote.
//
// It owns the reading of git directories and the file that binds projects to
// directories. It starts no process and changes nothing in a repository. It must
// not know requests, callers or conversations. Of our packages it may import
// graphiti (keys) and internal/datadir (to write the file).
package workspace
