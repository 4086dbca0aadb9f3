// Package workspace finds the repository of a directory on this machine, and decides
// whether to trust the repository's origin: an archive can name any remote.
//
// It owns the reading of git directories, and the file that binds projects to directories. It
// starts no process and does not change repositories.
package workspace
