package cache

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strconv"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
)

// older reports whether one of a record's scopes has a newer generation.
func (f *tables) older(tx *database.Tx, r *record) (found bool, err error) {
	if f.shared == nil && r.generation >= f.newest {
		return false, nil
	}
	for _, scope := range r.scopes {
		var floor []byte
		err := tx.QueryRow("SELECT value FROM "+floorKind.name+" WHERE list = '' AND key = ?", []byte(scope)).Scan(&floor)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return false, err
		}
		if n, err := strconv.ParseInt(string(floor), 10, 64); err != nil || n > r.generation {
			return true, err
		}
	}
	return false, nil
}

// forget ends the records with a scope and returns their number.
func (f *tables) forget(ctx context.Context, k *kind, scope string) (int, error) {
	n := 0
	err := f.db.Write(ctx, func(tx *database.Tx) (err error) {
		tx.Checkpoint()
		if k.rest != nil {
			n, err = leaveRest(tx, k, scope)
			return err
		}
		r, err := tx.Exec("DELETE FROM "+k.name+" WHERE instr(scopes, ?) > 0", listed(scope))
		if err != nil {
			return err
		}
		gone, err := r.RowsAffected()
		n = int(gone)
		return err
	})
	if err != nil {
		return 0, err // the transaction may still be setting n
	}
	return n, nil
}

func ofScope(k *kind) string {
	return "SELECT key, value FROM " + k.name + " WHERE list = '' AND instr(scopes, ?) > 0"
}

// leaveRest reduces the records of a scope to their rest, and returns the number of counted
// ones.
func leaveRest(tx *database.Tx, k *kind, scope string) (n int, err error) {
	rows, err := tx.Query(ofScope(k), listed(scope))
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	var keys, rests [][]byte
	for rows.Next() {
		var key, value sql.RawBytes
		if err := rows.Scan(&key, &value); err != nil {
			return 0, err
		}
		rest, counted := k.rest(value)
		keys, rests = append(keys, bytes.Clone(key)), append(rests, rest)
		if counted {
			n++
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return 0, err
	}
	for i := range keys {
		if _, err := tx.Exec("UPDATE "+k.name+" SET value = ?, scopes = '' WHERE list = '' AND key = ?", rests[i], keys[i]); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// raise increments the number of forgets, or seen if that is higher, and makes the result the
// generation of the scopes. It stores o with the number before its value. If the returned number
// is not zero, all of that is stored, even with an error.
func (f *tables) raise(ctx context.Context, o *record, seen int64, scopes []string) (int64, error) {
	var number int64
	err := f.db.Alone(ctx, func(tx *database.Tx) error {
		number = 1
		var text []byte
		err := tx.QueryRow("SELECT value FROM "+generationKind.name+" WHERE list = '' AND key = ?", []byte(generationKey)).Scan(&text)
		if err == nil {
			number, err = strconv.ParseInt(string(text), 10, 64)
		}
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		number = max(number, seen) + 1
		f.newest = max(f.newest, number)
		text = strconv.AppendInt(nil, number, 10)
		records := []*record{
			{kind: generationKind, key: []byte(generationKey), value: text},
			{kind: o.kind, key: o.key, value: append(slices.Clip(text), o.value...)},
		}
		for _, scope := range scopes {
			records = append(records, &record{kind: floorKind, key: []byte(scope), value: text})
		}
		for _, r := range records {
			if _, err := f.put(tx, r); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return number, f.announce(ctx)
}

// announce returns when every process that shares the store has applied its forgets and proofs.
func (f *tables) announce(ctx context.Context) error {
	if f.shared == nil {
		return nil
	}
	return f.shared.Announce(ctx)
}
