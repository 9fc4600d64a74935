package assay

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"

	"assay/corpus"
	"assay/fetch"
	"assay/pipeline"
	"assay/scrapers"
)

// FeedRecipe is a claims table that a build asks the web for: at an address, or by a query of Google's
// Fact Check Tools. Its rows are kept like those of an import; what leaves a feed stays.
type FeedRecipe struct {
	Table      string `yaml:"table" json:"table"`
	URL        string `yaml:"url,omitempty" json:"url,omitzero"`
	Query      string `yaml:"query,omitempty" json:"query,omitzero"`         // factcheck_tools: what claims are about
	Publisher  string `yaml:"publisher,omitempty" json:"publisher,omitzero"` // factcheck_tools: site of the reviews, e.g. politifact.com
	Language   string `yaml:"language,omitempty" json:"language,omitzero"`
	MaxAgeDays int    `yaml:"max_age_days,omitempty" json:"max_age_days,omitzero"`
}

// FactCheckToolsAccess is how Google's Fact Check Tools are asked. The key is named here and stands in the
// environment.
type FactCheckToolsAccess struct {
	KeyEnv string `yaml:"key_env" json:"key_env"` // environment variable that holds the key
	Base   string `yaml:"base" json:"base"`
}

const tableFactCheckTools = "factcheck_tools"

func (f FeedRecipe) query() scrapers.ClaimQuery {
	return scrapers.ClaimQuery{Query: f.Query, Publisher: f.Publisher, Language: f.Language, MaxAgeDays: f.MaxAgeDays}
}

// key names the feed among the items of its stage.
func (f FeedRecipe) key() string {
	if f.URL != "" {
		return corpus.CanonicalURL(f.URL)
	}
	return f.query().String()
}

// checkFeeds refuses feeds that cannot be asked for.
func (c *Config) checkFeeds(bad func(key, format string, args ...any)) {
	keys := map[string]bool{}
	for i, f := range c.Recipe.Feeds {
		at := fmt.Sprintf("recipe.feeds[%d]", i)
		if _, err := scrapers.TableNamed(f.Table); err != nil || f.Table == "mapped" {
			bad(at+".table", "%q is none of %s", f.Table, strings.Join(slices.DeleteFunc(names(scrapers.Tables, func(t scrapers.Table) string { return t.Name }), func(n string) bool { return n == "mapped" }), ", "))
			continue
		}
		asked := f.Query != "" || f.Publisher != "" || f.Language != "" || f.MaxAgeDays != 0
		switch {
		case f.URL != "" && asked:
			bad(at, "a feed has an address or a query, not both")
		case f.URL != "":
			checkBase(at+".url", f.URL, c.Runtime, bad)
		case f.Table != tableFactCheckTools:
			bad(at+".url", "it is empty; of %s alone a feed may be a query", tableFactCheckTools)
		case f.Query == "" && f.Publisher == "":
			bad(at, "claims:search wants a query, or the publisher whose reviews to list")
		case f.MaxAgeDays < 0 || f.MaxAgeDays > maxDays:
			bad(at+".max_age_days", "%d is not between 0 and %d", f.MaxAgeDays, maxDays)
		}
		if keys[f.Table+" "+f.key()] {
			bad(at, "it stands twice")
		}
		keys[f.Table+" "+f.key()] = true
	}
	if len(c.Recipe.Feeds) > 0 && !slices.Contains(c.Recipe.Discover, DiscoverImported) {
		bad("recipe.discover", "feeds fill tables, which are discovered as %s", DiscoverImported)
	}
	if !c.Recipe.searchesClaims() {
		return
	}
	access := c.Runtime.FactCheckTools
	if !variableName.MatchString(access.KeyEnv) {
		bad("runtime.fact_check_tools.key_env", "it names the environment variable that holds the key; if this is the key, take it out of the file")
	}
	if checkBase("runtime.fact_check_tools.base", access.Base, c.Runtime, bad) && !strings.HasPrefix(access.Base, "https://") && !listed(access.Base, c.Runtime) {
		bad("runtime.fact_check_tools.base", "a key is sent over https alone, or to a host of runtime.allow_private")
	}
}

// searchesClaims reports whether a feed is a query of Fact Check Tools.
func (r Recipe) searchesClaims() bool {
	return slices.ContainsFunc(r.Feeds, func(f FeedRecipe) bool { return f.Table == tableFactCheckTools && f.URL == "" })
}

// factCheckKey is the credential of Fact Check Tools, none where the recipe does not ask them or the
// environment has no key.
func (c Config) factCheckKey() []fetch.Credential {
	access := c.Runtime.FactCheckTools
	secret := os.Getenv(access.KeyEnv)
	if !c.Recipe.searchesClaims() || secret == "" {
		return nil
	}
	return []fetch.Credential{{Name: tableFactCheckTools, Hosts: []string{corpus.Host(access.Base)}, Query: "key", Secret: secret}}
}

// A Feed is what came of one feed: how many rows it has, and which of them cannot be read.
type Feed struct {
	Counts   map[string]int `json:"counts"`
	Problems []string       `json:"problems,omitempty"` // the first ones; Counts tells how many there are
}

// feed reads a feed into the rows of its table. It is a stage like any other: asked again only when what
// it was answered has changed, and the rows are those of the answer.
func (s stages) feed(table scrapers.Table) pipeline.Stage[FeedRecipe, Feed] {
	return pipeline.Stage[FeedRecipe, Feed]{
		Name: KindDiscover + "/" + table.Name, Version: table.Version,
		Do: func(ctx context.Context, f FeedRecipe) (Feed, error) {
			r := newImportReport("claims-table", f.key())
			var err error
			if f.URL != "" {
				err = s.w.importAddress(ctx, r, f.URL, ImportOptions{As: f.Table})
			} else {
				if s.w.Config.factCheckKey() == nil && !s.w.replays {
					return Feed{}, &scrapers.ServiceError{Asked: f.key(), Reason: scrapers.ReasonCredentials, Detail: "the environment has no " + s.w.Config.Runtime.FactCheckTools.KeyEnv}
				}
				err = s.w.importRows(ctx, r, table, scrapers.SearchClaims(ctx, s.w.fetch, s.w.Config.Runtime.FactCheckTools.Base, f.query()))
			}
			if err != nil {
				return Feed{}, err
			}
			// What the store had before is nothing that the feed says.
			for _, name := range []string{"rows stored", "rows known", "rows changed"} {
				delete(r.Counts, name)
			}
			return Feed{Counts: r.Counts, Problems: r.Problems}, nil
		},
	}
}

// feeds reads the feeds of the recipe, one after the other, before the rows are walked.
func (k *walk) feeds(ctx context.Context) error {
	for _, f := range k.w.Config.Recipe.Feeds {
		table, err := scrapers.TableNamed(f.Table)
		if err != nil {
			return err
		}
		stage := k.stages.feed(table)
		k.e.Expect(stage.Name, 1)
		_, err = pipeline.Run(ctx, k.e, stage, f.key(), f)
		if _, _, err := k.settled(ctx, "feed", err); err != nil {
			return err
		}
	}
	return nil
}

// importAddress stores the rows of a claims table that is fetched. Its file is stored before it is read, and
// read in pieces.
func (w *Workspace) importAddress(ctx context.Context, r *ImportReport, address string, o ImportOptions) error {
	in, err := w.fetch.Stream(ctx, fetch.Request{URL: address, Accept: "*/*"})
	if err != nil {
		return err
	}
	defer in.Close()
	r.Counts["bytes fetched"] = int(in.Length)
	name := address
	if u, err := url.Parse(in.URL); err == nil {
		name = path.Base(u.Path)
	}
	return w.importTable(ctx, r, name, in, o)
}

// importRows stores rows. An *scrapers.EndError ends it; what came before counts.
func (w *Workspace) importRows(ctx context.Context, r *ImportReport, table scrapers.Table, all iter.Seq2[scrapers.Row, error]) error {
	rows := w.newRows(table, r)
	for row, err := range all {
		if stopped := ctx.Err(); stopped != nil {
			return errors.Join(stopped, rows.flush())
		}
		if err == nil {
			if err := rows.add(row); err != nil {
				return err
			}
			continue
		}
		if end := (*scrapers.EndError)(nil); errors.As(err, &end) {
			return errors.Join(err, rows.flush())
		}
		rows.refuse(err)
	}
	return rows.flush()
}
