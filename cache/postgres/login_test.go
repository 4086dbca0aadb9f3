package postgres

import "testing"

// TestLogin checks that a new connection has the current user and password, and the server and
// database of the start.
func TestLogin(t *testing.T) {
	t.Parallel()
	for latest, want := range map[string][2]string{
		"postgres://two:new@other:1/elsewhere": {"two", "new"},
		"not an address":                       {"one", "old"},
	} {
		cfg, err := parse("postgres://one:old@server:5432/db")
		if err != nil {
			t.Fatal(err)
		}
		o := Options{Latest: func() string { return latest }}
		_ = o.login(t.Context(), cfg.ConnConfig) // returns no error
		if c := cfg.ConnConfig; c.User != want[0] || c.Password != want[1] || c.Host != "server" || c.Database != "db" {
			t.Errorf("%s: %s %s %s %s", latest, c.User, c.Password, c.Host, c.Database)
		}
	}
}
