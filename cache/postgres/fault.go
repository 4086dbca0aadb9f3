package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
)

// setting is the setting with the address.
const setting = "state.postgres_url"

const wellFormed = "write e.g. postgres://user:password@127.0.0.1:5432/graphiti_proxy, with ?sslmode=require for TLS"

// remedies maps codes of Postgres, or their first two letters, to remedies
// (https://www.postgresql.org/docs/current/errcodes-appendix.html).
var remedies = map[string]string{
	"28":    "correct the user and the password in state.postgres_url",
	"3D000": "create the database (createdb), or correct its name in state.postgres_url",
	"42501": "let the user create a schema in the database: GRANT CREATE ON DATABASE … TO …",
	"53300": "raise max_connections of Postgres: each replica uses up to 9",
	"40":    busy,
	"55P03": busy,
	full:    "make room on the disk of Postgres",
	"25006": "correct state.postgres_url: the server is read-only, perhaps a standby",
}

// full is the code of a full disk.
const full = "53100"

const busy = "end the transactions of other programs in state.postgres_url"

const unreachable = "start Postgres, or correct state.postgres_url"

// undone reports whether other transactions have undone or blocked one, which may succeed again.
func undone(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && (e.Code == "40001" || e.Code == "40P01" || e.Code == "55P03")
}

// unusable reports whether an error is one of the server or the connection, and not of the
// statement.
func unusable(err error) bool {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		switch e.Code[:2] {
		case "08", "28", "3D", "53", "57", "58", "XX":
			return e.Code != "57014" // canceled by us
		}
		return e.Code == "25006" || e.Code == "25P03" || e.Code == "3F000" || e.Code == "42P01"
	}
	var network net.Error
	var connect *pgconn.ConnectError
	return errors.As(err, &connect) || errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "conn closed")
}

// faultOf returns the Fault of an error, with its cause in few words and without a credential.
func faultOf(err error) *database.Fault {
	var known *database.Fault
	if errors.As(err, &known) {
		return known
	}
	f := &database.Fault{Path: setting, Kind: database.Away, Since: time.Now(), Err: cause(err), Remedy: unreachable}
	var e *pgconn.PgError
	if errors.As(err, &e) {
		for _, code := range []string{e.Code[:2], e.Code} {
			if r, ok := remedies[code]; ok {
				f.Remedy = r
			}
		}
	}
	return f
}

// cause returns the innermost error: outer ones repeat the address, and may be long.
func cause(err error) error {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return errors.New(e.Message + " (" + e.Code + ")")
	}
	var lookup *net.DNSError
	if errors.As(err, &lookup) {
		return lookup
	}
	var op *net.OpError
	if errors.As(err, &op) {
		return op
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("no answer in time")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it closed the connection")
	}
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			first, _, _ := strings.Cut(err.Error(), "\n") // of several addresses
			return errors.New(first)
		}
		err = inner
	}
}
