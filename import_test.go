package assay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/kv"
)

// rowsOf are what is stored of a table: the columns of each row.
func rowsOf(t *testing.T, w *Workspace, name string) []string {
	t.Helper()
	columns := map[string][]string{
		"raguard": {"Claim ID", "Claim", "Verdict", "Document IDs", "Document Labels", "Original Verdict"}, "pairs": {"claim", "verdict"},
	}[name]
	var out []string
	for e, err := range w.tables.Rows.Scan(kv.Prefix(name), "") {
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, c := range columns {
			said = append(said, e.Value.Fields[c])
		}
		out = append(out, strings.Join(said, "|"))
	}
	return out
}

// A claim number that two files give to two claims is a conflict that is told, by every way in which a
// claim comes along; what was first stays, with its labels alone. Agreeing files fill each other's gaps.
func TestConflictingClaimsAreReported(t *testing.T) {
	const header = "Claim ID,Claim,Verdict,Document IDs,Document Labels,Original Verdict\n"
	tolls := header + "1,The toll doubled.,False,[7],['misleading'],barely-true\n2,The quay is long.,True,[],[],true\n"
	nested := func(id int, claim, verdict, label string) string {
		return fmt.Sprintf(`[{"claim_id":%d,"claim":%q,"verdict":%q,"documents":[{"Document ID":9,"Title":"Nine","Full Text":"The ninth reader writes about the toll at some length.","Claim ID":%d,"Document Label":%q,"Link":"https://www.reddit.com/r/tolls/comments/n9/"}]}]`, id, claim, verdict, id, label)
	}
	line := func(claim, verdict, label string, n int) string {
		return fmt.Sprintf(`{"claim":%q,"title":"Post %[2]d","text":"The reader of number %[2]d writes about the toll.","url":"https://news%[2]d.example/","label":%[3]q,"verdict":%[4]q}`+"\n", claim, n, label, verdict)
	}
	for _, tt := range []struct {
		name        string
		table       string
		first       [2]string // kind and content
		second      [2]string
		conflicts   int
		says        string
		stored      []string
		pairs       int
		firstAgain  int // problems
		secondAgain int
	}{
		{"same table twice", "raguard", [2]string{"claims-table", tolls}, [2]string{"claims-table", tolls}, 0, "",
			[]string{"1|The toll doubled.|False|[7]|['misleading']|barely-true", "2|The quay is long.|True|[]|[]|true"}, 1, 0, 0},
		{"another claim of the number", "raguard", [2]string{"claims-table", tolls}, [2]string{"claims-table", header + "1,The toll fell.,False,[8],['supporting'],barely-true\n3,The pier is short.,True,[],[],true\n"}, 1,
			`claim 1 of raguard contradicts the one imported before: its Claim is "The toll doubled.", not "The toll fell."`,
			[]string{"1|The toll doubled.|False|[7]|['misleading']|barely-true", "2|The quay is long.|True|[]|[]|true", "3|The pier is short.|True|[]|[]|true"}, 1, 0, 1},
		{"another rating of the number", "raguard", [2]string{"claims-table", tolls}, [2]string{"claims-table", header + "2,The quay is long.,True,[],[],mostly-true\n"}, 1, `its Original Verdict is "true", not "mostly-true"`,
			[]string{"1|The toll doubled.|False|[7]|['misleading']|barely-true", "2|The quay is long.|True|[]|[]|true"}, 1, 0, 1},
		{"other spellings of the same", "raguard", [2]string{"claims-table", tolls}, [2]string{"claims-table", header + "2,The quay  is long.,True,[],[],True\n"}, 0, "",
			[]string{"1|The toll doubled.|False|[7]|['misleading']|barely-true", "2|The quay  is long.|True|[]|[]|True"}, 1, 0, 0},
		{"pairs of another claim", "raguard", [2]string{"claims-table", tolls}, [2]string{"pairs", nested(1, "The toll fell.", "barely-true", "supporting")}, 1, `not "The toll fell."`,
			[]string{"1|The toll doubled.|False|[7]|['misleading']|barely-true", "2|The quay is long.|True|[]|[]|true"}, 1, 0, 1},
		{"pairs of the same claim", "raguard", [2]string{"claims-table", tolls}, [2]string{"pairs", nested(1, "The toll doubled.", "barely-true", "supporting")}, 0, "",
			[]string{"1|The toll doubled.|False|[7]|['misleading']|barely-true", "2|The quay is long.|True|[]|[]|true"}, 2, 0, 0},
		{"a table after pairs of another claim", "raguard", [2]string{"pairs", nested(1, "The toll fell.", "barely-true", "supporting")}, [2]string{"claims-table", tolls}, 1, `its Claim is "The toll fell.", not "The toll doubled."`,
			[]string{"1|The toll fell.|False|[]|[]|barely-true", "2|The quay is long.|True|[]|[]|true"}, 1, 0, 1},
		{"a table after pairs of the same claim", "raguard", [2]string{"pairs", nested(1, "The toll doubled.", "barely-true", "supporting")}, [2]string{"claims-table", tolls}, 0, "",
			[]string{"1|The toll doubled.|False|[7]|['misleading']|barely-true", "2|The quay is long.|True|[]|[]|true"}, 2, 0, 0},
		{"lines of another verdict", "pairs", [2]string{"pairs", line("The toll doubled.", "false", "misleading", 1)}, [2]string{"pairs", line("The toll doubled.", "true", "supporting", 2)}, 1, `its verdict is "false", not "true"`,
			[]string{"The toll doubled.|false"}, 1, 0, 1},
		{"two verdicts in one file", "pairs", [2]string{"pairs", line("The toll doubled.", "false", "misleading", 1) + line("The toll doubled.", "true", "supporting", 2)}, [2]string{"pairs", line("The toll doubled.", "", "supporting", 3)}, 0, "",
			[]string{"The toll doubled.|false"}, 2, 1, 0},
		{"a verdict that comes later", "pairs", [2]string{"pairs", line("The toll doubled.", "", "misleading", 1)}, [2]string{"pairs", line("The toll doubled.", "mostly-true", "supporting", 2)}, 0, "",
			[]string{"The toll doubled.|mostly-true"}, 2, 0, 0},
		{"a verdict in other words", "pairs", [2]string{"claims-table", "claim,verdict\nThe toll doubled.,Mostly True\n"}, [2]string{"pairs", line("The toll doubled.", "mostly-true", "supporting", 2)}, 0, "",
			[]string{"The toll doubled.|mostly-true"}, 1, 0, 0},
		{"two tables with two verdicts", "pairs", [2]string{"claims-table", "claim,verdict\nThe toll doubled.,false\n"}, [2]string{"claims-table", "claim,verdict\nThe quay is long.,true\nThe toll doubled.,true\n"}, 1,
			`row 2 of two: claim "The toll doubled." of pairs contradicts the one imported before: its verdict is "false", not "true"`,
			[]string{"The toll doubled.|false", "The quay is long.|true"}, 0, 0, 1},
		{"a table after pairs of another verdict", "pairs", [2]string{"pairs", line("The toll doubled.", "false", "misleading", 1)}, [2]string{"claims-table", "claim,verdict\nThe toll doubled.,true\n"}, 1, `its verdict is "false", not "true"`,
			[]string{"The toll doubled.|false"}, 1, 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFolder(t, t.TempDir())
			kinds, paths := [2]string{tt.first[0], tt.second[0]}, [2]string{f.write("one", tt.first[1]), f.write("two", tt.second[1])}
			f.with(func(w *Workspace) error {
				var reports []*ImportReport
				for _, i := range []int{0, 1, 0, 1} {
					r, err := w.Import(t.Context(), kinds[i], paths[i], ImportOptions{})
					if err != nil {
						return err
					}
					reports = append(reports, r)
				}
				if r := reports[1]; r.Counts["conflicts"] != tt.conflicts || r.Counts["problems"] != tt.conflicts {
					t.Errorf("report %+v, want %d conflicts", r, tt.conflicts)
				} else if tt.says != "" && !strings.Contains(r.Problems[0], tt.says) {
					t.Errorf("problem %q does not say %q", r.Problems[0], tt.says)
				}
				if one, two := reports[2].Counts["problems"], reports[3].Counts["problems"]; one != tt.firstAgain || two != tt.secondAgain {
					t.Errorf("imported again: %d and %d problems, want %d and %d", one, two, tt.firstAgain, tt.secondAgain)
				}
				if diff := cmp.Diff(tt.stored, rowsOf(t, w, tt.table)); diff != "" {
					t.Errorf("stored (-want +got):\n%s", diff)
				}
				pairs := 0
				for _, err := range w.tables.Links.Scan("", "") {
					if err != nil {
						return err
					}
					pairs++
				}
				if pairs != tt.pairs {
					t.Errorf("%d pairs are stored, want %d", pairs, tt.pairs)
				}
				return nil
			})
		})
	}
}

// A file without an end and without a record ends with the context, whatever it is taken for.
func TestImportsOfEndlessFilesStop(t *testing.T) {
	if _, err := os.Stat("/dev/zero"); err != nil {
		t.Skip("skipped: there is no /dev/zero")
	}
	for _, kind := range []string{"warc", "reddit", "pairs", "claims-table"} {
		t.Run(kind, func(t *testing.T) {
			f := newFolder(t, t.TempDir())
			f.with(func(w *Workspace) error {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				time.AfterFunc(50*time.Millisecond, cancel)
				if _, err := w.Import(ctx, kind, "/dev/zero", ImportOptions{}); err == nil {
					t.Error("nothing is wrong with it")
				} else if kind == "warc" && !errors.Is(err, context.Canceled) {
					t.Errorf("error %v, want that it was cancelled", err)
				}
				return nil
			})
		})
	}
}
