package sqlite_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

// A write returns after its commit, which it shares with others that wait. Readers see committed
// data only.
func ExampleDB_Write() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := sqlite.Open(filepath.Join(dir, "cats.db"), sqlite.Options{Schema: "CREATE TABLE cats (name TEXT)", Version: 1, Sync: sqlite.SyncNormal})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	ctx := context.Background()
	err = db.Write(ctx, func(tx *database.Tx) error {
		_, err := tx.Exec("INSERT INTO cats VALUES (?)", "Miso")
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	var name string
	err = db.QueryRow(ctx, "SELECT name FROM cats", nil, &name)
	fmt.Println(name, err)
	// Output: Miso <nil>
}
