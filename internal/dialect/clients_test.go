package dialect_test

import (
	"os"
	"path/filepath"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestClientFiles checks that the files of clients have only known sections, each once.
func TestClientFiles(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("clients/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %q, %v; want the files of clients", files, err)
	}
	for _, file := range files {
		f, err := os.Open(file)
		must(t, err)
		defer f.Close()
		type some map[string]any
		var sections struct {
			Name                                                             string
			Tags, Tails, Within, Around, Interrupted, Quotes, Tools, Answers []string
			Programs                                                         []struct {
				Name, Title     string
				Places, Library bool
				Agents, Prompts []string
			}
			Chores []struct {
				Kind, System, Inside, User, Then string
				Holds                            []string
				Whole, Bare, Agent               bool
			}
			Texts []struct {
				Start, Then, Opens string
				Whole, Summary     bool
			}
			From []struct {
				Start, End string
				Behind     bool
			}
			Items []struct {
				Clients           []string
				Start, Tag, Until string
				Where             struct{ Opening, Last, Only bool }
				Named             bool
			}
			Prompts     []string
			Files       [][2]string
			Connect     some
			Transcripts some
		}
		d := yaml.NewDecoder(f)
		d.KnownFields(true)
		if err := d.Decode(&sections); err != nil || sections.Name == "" {
			t.Errorf("%s: %v, name %q", file, err, sections.Name)
		}
	}
}
