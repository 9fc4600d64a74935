package assay

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"assay/annotate"
	"assay/corpus"
	"assay/llm"
	"assay/output"
	"assay/planner"
	"assay/scrapers"
)

// Config is assay.yaml. What is under Recipe changes the dataset; what is under Runtime never does, and
// what is under Publish says when a refresh must not release.
type Config struct {
	Recipe  Recipe  `yaml:"recipe" json:"recipe"`
	Runtime Runtime `yaml:"runtime" json:"runtime"`
	Publish Publish `yaml:"publish" json:"publish"`
}

// Publish holds the guard rails of a refresh: of a source's pages that were asked for since its last
// release, the share that may have turned out otherwise. A share is of 1.
type Publish struct {
	Changed float64 `yaml:"changed" json:"changed"` // another verdict or text, or excluded now
	Gone    float64 `yaml:"gone" json:"gone"`       // the first time counts too
	Failed  float64 `yaml:"failed" json:"failed"`   // not to be had, or not to be read
	Least   int     `yaml:"least" json:"least"`     // so many pages at least; fewer say nothing about a source
}

// RefreshPolicy says how much a refresh asks again.
type RefreshPolicy struct {
	Known     int                     `yaml:"known" json:"known"`         // a listing is read from the newest on until so many known items in a row
	Ages      []AgeRule               `yaml:"ages" json:"ages"`           // item pages, by the age of their review; the first rule that fits counts
	Documents []AgeRule               `yaml:"documents" json:"documents"` // linked pages; their age counts from the version that stands
	Posts     []AgeRule               `yaml:"posts" json:"posts"`         // of Reddit, where planner.posts names an interface
	Sources   map[string]SourcePolicy `yaml:"sources" json:"sources"`     // by site
}

// SourcePolicy is the part of a RefreshPolicy that a site may have for itself; what it leaves out counts
// as for all.
type SourcePolicy struct {
	Known int       `yaml:"known,omitempty" json:"known,omitzero"`
	Ages  []AgeRule `yaml:"ages,omitempty" json:"ages,omitzero"`
}

// An AgeRule says how often something is asked for again.
type AgeRule struct {
	Days  int `yaml:"days,omitempty" json:"days,omitzero"` // for what is at most so old; 0 means any age
	Every int `yaml:"every" json:"every"`                  // once it was not asked for during so many days; 0 means never
}

// of returns what counts for a source, which is a site or one of several places of it.
func (p RefreshPolicy) of(names ...string) SourcePolicy {
	out := SourcePolicy{Known: p.Known, Ages: p.Ages}
	for _, name := range names {
		if own, ok := p.Sources[name]; ok {
			if own.Known > 0 {
				out.Known = own.Known
			}
			if own.Ages != nil {
				out.Ages = own.Ages
			}
			break
		}
	}
	return out
}

// Recipe is everything that shapes the data. A stage's part of it enters the stage's fingerprint
// whole, so a changed field reruns what reads it and nothing else.
type Recipe struct {
	Name       string       `yaml:"name" json:"name"`       // title of the release
	Profile    string       `yaml:"profile" json:"profile"` // raguard or gpe: where the defaults come from
	Salt       string       `yaml:"salt" json:"salt"`       // of fences; the profile's name by default
	Discover   []string     `yaml:"discover" json:"discover"`
	Sites      []SiteRecipe `yaml:"sites" json:"sites"`
	Feeds      []FeedRecipe `yaml:"feeds" json:"feeds"`
	Speakers   []string     `yaml:"speakers" json:"speakers"` // the source's slugs, or of imported rows those of the names (corpus.NameSlug); empty means everybody
	Dates      Dates        `yaml:"dates" json:"dates"`       // of the statement
	Projection string       `yaml:"projection" json:"projection"`
	// Ratings maps printed ratings that no shipped map names, by source: {politifact: {"no idea": uncertain}}.
	Ratings map[string]map[string]corpus.Verdict `yaml:"ratings" json:"ratings"`
	Limits  Limits                               `yaml:"limits" json:"limits"`
	Extract ExtractRecipe                        `yaml:"extract" json:"extract"`
	// Categories are those whose claims belong to the corpus; empty means all, those without one included.
	Categories []string `yaml:"categories" json:"categories"`
	// CategoryBy says who may tell a claim's category: CategoryRule, and CategoryModel where no rule decides.
	CategoryBy []string       `yaml:"category_by" json:"category_by"`
	Evidence   []string       `yaml:"evidence" json:"evidence"`
	Planner    PlannerRecipe  `yaml:"planner" json:"planner"`
	Label      LabelRecipe    `yaml:"label" json:"label"`
	Entities   EntitiesRecipe `yaml:"entities" json:"entities"`
	// Judge drafts a verdict for every claim out of the evidence of the agentic search: assay list judges.
	// "" drafts none; it counts under policy gpe alone.
	Judge   string          `yaml:"judge" json:"judge"`
	Models  map[string]Role `yaml:"models" json:"models"`
	Formats []string        `yaml:"formats" json:"formats"`
}

// Values of Recipe.Discover and Recipe.Evidence.
const (
	DiscoverListing  = "listing"  // the site's own listing pages
	DiscoverStored   = "stored"   // stored pages whose address a site recognises
	DiscoverImported = "imported" // rows of imported claims tables and pairs

	CategoryRule  = corpus.CategoryFromRule  // by the tags of the page, else by what its source is about
	CategoryModel = corpus.CategoryFromModel // the model of the role category

	EvidenceSearch = "search" // the planner's search
	EvidencePairs  = "pairs"  // imported (claim, document) pairs
)

// SiteRecipe names a site and, for a mirror, where it is.
type SiteRecipe struct {
	Name string `yaml:"name" json:"name"`
	Base string `yaml:"base,omitempty" json:"base,omitzero"` // origin, e.g. https://mirror.example
}

// UnmarshalYAML takes a plain name for a site at its own address.
func (s *SiteRecipe) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode && !isNull(n) {
		*s = SiteRecipe{}
		return n.Decode(&s.Name)
	}
	type plain SiteRecipe
	return n.Decode((*plain)(s))
}

// Dates bounds a calendar date, both ends included; an empty end is open.
type Dates struct {
	From string `yaml:"from" json:"from"`
	To   string `yaml:"to" json:"to"`
}

// Limits bounds what a fetch may read. Sizes are bytes.
type Limits struct {
	Page         int64 `yaml:"page" json:"page"`
	Decompressed int64 `yaml:"decompressed" json:"decompressed"`
	Feed         int64 `yaml:"feed" json:"feed"`
	Redirects    int   `yaml:"redirects" json:"redirects"`
}

// PlannerRecipe is how evidence is searched for (methods 3.1, stage 2).
type PlannerRecipe struct {
	Policy      string   `yaml:"policy" json:"policy"`
	Variants    int      `yaml:"variants" json:"variants"` // keyword variants; 0 searches the claim's own text
	PerVariant  int      `yaml:"per_variant" json:"per_variant"`
	Keep        int      `yaml:"keep" json:"keep"`
	RRF         int      `yaml:"rrf_k" json:"rrf_k"` // constant of reciprocal-rank fusion
	Backend     string   `yaml:"backend" json:"backend"`
	Domains     []string `yaml:"domains" json:"domains"`           // registrable domains that a hit must be on
	FollowLinks bool     `yaml:"follow_links" json:"follow_links"` // a link post's target becomes a document too
	Subreddits  []string `yaml:"subreddits" json:"subreddits"`     // where the backends reddit and arctic_shift search; empty means everywhere
	Language    string   `yaml:"language" json:"language"`         // of the backend wikipedia, e.g. de; empty means en
	Posts       string   `yaml:"posts" json:"posts"`               // where a post that is not imported is read: pool, oauth, arctic_shift

	Agent AgentRecipe `yaml:"agent" json:"agent"`
}

// ExtractRecipe is how statements are found in documents of newsrooms and institutions.
type ExtractRecipe struct {
	Extractor     string `yaml:"extractor" json:"extractor"` // "" finds none
	PerDocument   int    `yaml:"per_document" json:"per_document"`
	DocumentChars int    `yaml:"document_chars" json:"document_chars"`
}

// LabelRecipe is how pairs are labelled (methods 3.1, stage 3).
type LabelRecipe struct {
	Protocol      string `yaml:"protocol" json:"protocol"`
	Mode          string `yaml:"mode" json:"mode"` // normal or compat
	QuoteCheck    bool   `yaml:"quote_check" json:"quote_check"`
	ZeroContext   bool   `yaml:"zero_context" json:"zero_context"`
	DocumentChars int    `yaml:"document_chars" json:"document_chars"`

	Samples  int         `yaml:"samples" json:"samples"`   // times that the annotator is asked about a pair; the majority is the label
	Shuffled int         `yaml:"shuffled" json:"shuffled"` // claims with a document of another claim, as a control; 0 means none
	Seed     uint64      `yaml:"seed" json:"seed"`         // of what is drawn: the pairs of the panel and of the control
	Panel    PanelRecipe `yaml:"panel" json:"panel"`
}

// PanelRecipe is who else labels pairs beside the annotator, and what becomes of it.
type PanelRecipe struct {
	Annotators []string `yaml:"annotators" json:"annotators"` // roles of Recipe.Models; none means no panel
	Pairs      int      `yaml:"pairs" json:"pairs"`           // drawn by label and verdict; 0 means all
	Consensus  string   `yaml:"consensus" json:"consensus"`   // ConsensusMajority or ConsensusUnanimous
}

// Values of PanelRecipe.Consensus.
const (
	ConsensusMajority  = "majority"  // more than half of the annotators, those without a label included
	ConsensusUnanimous = "unanimous" // all
)

// Role is the model that answers in one role: keywords, annotate, zero; plan and analyse for the agentic search;
// extract, entities, category and judge, which are the model of annotate where they are not named; and every annotator of a panel.
type Role struct {
	Endpoint    string   `yaml:"endpoint" json:"endpoint"` // name of an entry of Runtime.Endpoints
	Model       string   `yaml:"model" json:"model"`
	Temperature *float64 `yaml:"temperature,omitempty" json:"temperature,omitempty"`
	TopP        *float64 `yaml:"top_p,omitempty" json:"top_p,omitempty"`
	Seed        *int     `yaml:"seed,omitempty" json:"seed,omitempty"`
	MaxTokens   int      `yaml:"max_tokens" json:"max_tokens"`
}

// Runtime is how a run goes about its work: addresses, speed, money. Secrets are named, never held.
type Runtime struct {
	Contact        string                    `yaml:"contact" json:"contact"` // in the User-Agent; required for a live build
	Workers        int                       `yaml:"workers" json:"workers"` // claims at once; 0 means 64
	Delay          time.Duration             `yaml:"delay" json:"delay"`     // least gap between requests to a host
	HostDelay      map[string]time.Duration  `yaml:"host_delay" json:"host_delay"`
	RetryAfterCap  time.Duration             `yaml:"retry_after_cap" json:"retry_after_cap"`
	AllowPrivate   []string                  `yaml:"allow_private" json:"allow_private"` // exact host:port
	Resolve        map[string]string         `yaml:"resolve" json:"resolve"`             // host: ip:port to dial instead
	Endpoints      map[string]Endpoint       `yaml:"endpoints" json:"endpoints"`
	Reddit         RedditAccess              `yaml:"reddit" json:"reddit"`
	ArcticShift    InterfaceAddress          `yaml:"arctic_shift" json:"arctic_shift"`
	SearXNG        SearXNGAccess             `yaml:"searxng" json:"searxng"`
	FactCheckTools FactCheckToolsAccess      `yaml:"fact_check_tools" json:"fact_check_tools"`
	Search         map[string]planner.Access `yaml:"search" json:"search"`       // other interfaces of recipe.planner.backend, by its name
	MaxUSD         float64                   `yaml:"max_usd" json:"max_usd"`     // 0 means no cap
	MaxCalls       int                       `yaml:"max_calls" json:"max_calls"` // 0 means no cap
	ReserveMiB     int64                     `yaml:"reserve_mib" json:"reserve_mib"`
	Refresh        RefreshPolicy             `yaml:"refresh" json:"refresh"`
}

// Endpoint is where a model is reached.
type Endpoint struct {
	Provider    string        `yaml:"provider" json:"provider"` // openai or builtin
	BaseURL     string        `yaml:"base_url,omitempty" json:"base_url,omitzero"`
	KeyEnv      string        `yaml:"key_env,omitempty" json:"key_env,omitzero"` // environment variable that holds the key
	Profile     string        `yaml:"profile,omitempty" json:"profile,omitzero"`
	Concurrency int           `yaml:"concurrency,omitempty" json:"concurrency,omitzero"`
	RPM         int           `yaml:"rpm,omitempty" json:"rpm,omitzero"`
	TPM         int           `yaml:"tpm,omitempty" json:"tpm,omitzero"`
	Timeout     time.Duration `yaml:"timeout,omitempty" json:"timeout,omitzero"`
	Price       *llm.Price    `yaml:"price,omitempty" json:"price,omitempty"` // USD per million tokens; without it the price table counts, and what that does not know is free on this machine

	// What the profile does not fit; assay doctor says when.
	Schema     llm.SchemaMode `yaml:"schema,omitempty" json:"schema,omitzero"`           // json_schema, json_object or none
	TokenField string         `yaml:"token_field,omitempty" json:"token_field,omitzero"` // max_tokens or max_completion_tokens
	Canary     bool           `yaml:"canary,omitempty" json:"canary,omitzero"`           // a build probes a model that was never probed
}

//go:embed profiles/raguard.yaml
var raguardYAML []byte

//go:embed profiles/gpe.yaml
var gpeYAML []byte

// Profiles names the shipped sets of defaults.
func Profiles() []string { return []string{"gpe", "raguard"} }

// profileYAML returns the defaults of a profile, all of them.
func profileYAML(name string) ([]byte, error) {
	switch name {
	case "raguard":
		return raguardYAML, nil
	case "gpe":
		var c Config
		for _, text := range [][]byte{raguardYAML, gpeYAML} {
			if err := yaml.Unmarshal(text, &c); err != nil {
				return nil, fmt.Errorf("read profile %s: %w", name, err) // unreachable: the files are embedded
			}
		}
		c.Runtime.Search = planner.Accesses() // what is empty here would take them away
		c.Recipe.Sites = nil
		for _, site := range scrapers.All {
			c.Recipe.Sites = append(c.Recipe.Sites, SiteRecipe{Name: site.Name})
		}
		return yaml.Marshal(c)
	}
	return nil, fmt.Errorf("profile %q is unknown; known are %s", name, strings.Join(Profiles(), ", "))
}

// Setting is one value of the configuration and where it came from.
type Setting struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin string `json:"origin"` // profile raguard, assay.yaml:12, ASSAY_RUNTIME_WORKERS, flag
}

// Override is a value set on the command line.
type Override struct{ Key, Value string }

// ConfigName is the configuration's file name in a workspace.
const ConfigName = "assay.yaml"

// LoadConfig reads a workspace's configuration: the profile's defaults, then assay.yaml, then
// ASSAY_<KEY> variables, then overrides. An unknown key is an error that names the nearest known one.
func LoadConfig(dir string, environ []string, overrides ...Override) (Config, []Setting, error) {
	path := filepath.Join(dir, ConfigName)
	file, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Config{}, nil, fmt.Errorf("%s is no assay workspace: it has no %s; make one with: assay init %s", dir, ConfigName, dir)
	} else if err != nil {
		return Config{}, nil, err
	}
	return parseConfig(file, environ, overrides)
}

func parseConfig(file []byte, environ []string, overrides []Override) (Config, []Setting, error) {
	var c Config
	var head struct {
		Recipe struct {
			Profile string `yaml:"profile"`
		} `yaml:"recipe"`
	}
	var mistyped *yaml.TypeError // which the layers below tell of
	if err := yaml.Unmarshal(file, &head); err != nil && !errors.As(err, &mistyped) {
		return c, nil, unread(ConfigName, err)
	}
	if head.Recipe.Profile == "" {
		head.Recipe.Profile = "raguard"
	}
	defaults, err := profileYAML(head.Recipe.Profile)
	if err != nil {
		return c, nil, fmt.Errorf("%s: recipe.profile: %w", ConfigName, err)
	}
	origins := map[string]string{}
	merged := &yaml.Node{Kind: yaml.MappingNode}
	for _, layer := range []struct {
		name string
		data []byte
	}{{"default", searchYAML()}, {"profile " + head.Recipe.Profile, defaults}, {ConfigName, file}} {
		if err := applyYAML(merged, layer.data, layer.name, origins); err != nil {
			return c, nil, err
		}
	}
	if err := merged.Decode(&c); err != nil {
		return c, nil, unread(ConfigName, err)
	}
	if err := applyOverrides(&c, environ, overrides, origins); err != nil {
		return c, nil, err
	}
	if c.Recipe.Salt == "" {
		c.Recipe.Salt = c.Recipe.Profile
	}
	said := func(key string) bool { // by a file, a variable or a flag
		return origins[key] != "" && origins[key] != "default" && !strings.HasPrefix(origins[key], "profile ")
	}
	if !c.Recipe.agentic() && !said("recipe.judge") {
		c.Recipe.Judge = "" // of a profile whose search the recipe replaces
	}
	if err := c.check(said); err != nil {
		return c, nil, err
	}
	return c, settings(c, origins), nil
}

// searchYAML holds the settings with which the search backends come.
func searchYAML() []byte {
	data, err := yaml.Marshal(map[string]any{"runtime": map[string]any{"search": planner.Accesses()}})
	if err != nil {
		return nil // unreachable: plain structs marshal
	}
	return data
}

// applyYAML lays a file over what is set so far. A mapping adds to the one below it, key by key, so
// that naming a role's model keeps its other settings; an empty mapping, a list or a value replaces it.
func applyYAML(merged *yaml.Node, data []byte, name string, origins map[string]string) error {
	var doc yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return unread(name, err)
	}
	if err := d.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: a second document begins after ---, which nothing would read", name)
	}
	if len(doc.Content) == 0 {
		return nil // an empty file takes every default
	}
	var problems []string
	checkKeys(doc.Content[0], reflect.TypeFor[Config](), "", name, origins, &problems)
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "\n"))
	}
	// Decoding by itself names the line of a key that stands twice.
	if err := doc.Decode(&Config{}); err != nil {
		return unread(name, err)
	}
	overlay(merged, doc.Content[0])
	return nil
}

// unread tells in our words, with the file and its line, why YAML could not be read.
func unread(name string, err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	var mistyped *yaml.TypeError
	if errors.As(err, &mistyped) {
		text = strings.Join(mistyped.Errors, "\n")
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if at := errorLine.FindStringSubmatch(line); at != nil {
			lines[i] = name + ":" + at[1] + ": " + line[len(at[0]):]
		} else {
			lines[i] = name + ": " + line
		}
	}
	return errors.New(strings.Join(lines, "\n"))
}

var errorLine = regexp.MustCompile(`^line (\d+): `)

func overlay(below, above *yaml.Node) {
	for above.Kind == yaml.AliasNode {
		above = above.Alias
	}
	if isNull(above) {
		return // a key with nothing behind it takes the default
	}
	if below.Kind != yaml.MappingNode || above.Kind != yaml.MappingNode || len(above.Content) == 0 {
		*below = *above
		return
	}
	for i := 0; i+1 < len(above.Content); i += 2 {
		key, value := above.Content[i], above.Content[i+1]
		found := false
		for k := 0; k+1 < len(below.Content); k += 2 {
			if below.Content[k].Value == key.Value {
				overlay(below.Content[k+1], value)
				found = true
			}
		}
		if !found {
			below.Content = append(below.Content, key, value)
		}
	}
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// wanted tells in plain words what has to stand for a value of a type where n is nothing of the kind; "" says
// that it fits.
func wanted(n *yaml.Node, t reflect.Type) string {
	scalar := n.Kind == yaml.ScalarNode
	switch kind := t.Kind(); {
	case isNull(n):
	case t == reflect.TypeFor[time.Duration]():
		if _, err := time.ParseDuration(n.Value); !scalar || n.ShortTag() != "!!str" || err != nil {
			return "a time with its unit, such as 30s, 5m or 0s,"
		}
	case kind == reflect.Int || kind == reflect.Int64 || kind == reflect.Uint64:
		return wantedWhole(n, kind == reflect.Uint64)
	case kind == reflect.Float64:
		if v, ok := number(n); !ok || math.IsNaN(v) || math.IsInf(v, 0) {
			return "a number"
		}
	case kind == reflect.Bool:
		if !scalar || n.Decode(new(bool)) != nil {
			return "true or false"
		}
	case kind == reflect.String:
		if !scalar {
			return "a single text"
		}
	case kind == reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			return "a list, such as [a, b],"
		}
	case n.Kind != yaml.MappingNode && !(scalar && t == reflect.TypeFor[SiteRecipe]()):
		return "a group of settings, such as {key: value},"
	}
	return ""
}

// wantedWhole refuses fractions, which decoding would cut off, and what no int64 holds.
func wantedWhole(n *yaml.Node, unsigned bool) string {
	v, ok := number(n)
	switch {
	case !ok || v != math.Trunc(v):
		return "a whole number"
	case unsigned && v < 0:
		return "a whole number of 0 or more"
	case math.Abs(v) > 1<<53 && n.Decode(new(int64)) != nil && !(unsigned && n.Decode(new(uint64)) == nil):
		return "a smaller whole number"
	}
	return ""
}

// number reads a number that is not quoted.
func number(n *yaml.Node) (v float64, ok bool) {
	if tag := n.ShortTag(); n.Kind != yaml.ScalarNode || tag != "!!int" && tag != "!!float" {
		return 0, false
	}
	return v, n.Decode(&v) == nil
}

// standing is how a message repeats what stands in a file.
func standing(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a group of settings"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.ShortTag() == "!!str":
		return fmt.Sprintf("%q", n.Value)
	}
	return n.Value
}

// lineOf is where in a file a problem is, "" where the value is in no file.
func lineOf(name string, line int) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d: ", name, line)
}

// checkKeys walks a YAML mapping beside the Go type that it will fill, so that a typo is named with
// its line and its nearest known key, and every value with its origin.
func checkKeys(n *yaml.Node, t reflect.Type, prefix, name string, origins map[string]string, problems *[]string) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if want := wanted(n, t); want != "" {
		*problems = append(*problems, fmt.Sprintf("%s%s: %s stands where %s is wanted", lineOf(name, n.Line), cmp.Or(prefix, "the file"), standing(n), want))
		return
	}
	switch {
	case n.Kind == yaml.MappingNode && t.Kind() == reflect.Struct:
		known := map[string]reflect.Type{}
		for i := range t.NumField() {
			known[yamlName(t.Field(i))] = t.Field(i).Type
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			ft, ok := known[key.Value]
			if !ok {
				*problems = append(*problems, fmt.Sprintf("%sunknown key %q%s%s", lineOf(name, key.Line), key.Value, within(prefix), nearest(key.Value, known)))
				continue
			}
			checkKeys(n.Content[i+1], ft, join(prefix, key.Value), name, origins, problems)
		}
	case n.Kind == yaml.MappingNode && t.Kind() == reflect.Map:
		for i := 0; i+1 < len(n.Content); i += 2 {
			checkKeys(n.Content[i+1], t.Elem(), join(prefix, n.Content[i].Value), name, origins, problems)
		}
	case n.Kind == yaml.SequenceNode && t.Kind() == reflect.Slice:
		origins[prefix] = origin(name, n.Line)
		for i, item := range n.Content {
			checkKeys(item, t.Elem(), fmt.Sprintf("%s[%d]", prefix, i), name, map[string]string{}, problems)
		}
	default:
		if !isNull(n) {
			origins[prefix] = origin(name, n.Line)
		}
	}
}

func origin(name string, line int) string {
	if name == ConfigName {
		return fmt.Sprintf("%s:%d", name, line)
	}
	return name
}

func yamlName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return name
}

func join(prefix, key string) string {
	if prefix == "" {
		return key
	}
	return prefix + "." + key
}

func within(prefix string) string {
	if prefix == "" {
		return ""
	}
	return " in " + prefix
}

func nearest(key string, known map[string]reflect.Type) string {
	best, dist := "", len(key)/2+2
	for _, k := range sortedKeys(known) {
		if d := editDistance(key, k); d < dist {
			best, dist = k, d
		}
	}
	if best == "" {
		return "; known are " + strings.Join(sortedKeys(known), ", ")
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// editDistance is Levenshtein's.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal, row[j] = row[j], min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}

// applyOverrides sets single values from ASSAY_<KEY> variables and from flags. Only plain values can
// be set so: ASSAY_RUNTIME_MAX_USD=5, ASSAY_RECIPE_LABEL_MODE=compat.
func applyOverrides(c *Config, environ []string, overrides []Override, origins map[string]string) error {
	names := map[string]string{}
	for _, s := range settings(*c, nil) {
		names["ASSAY_"+envName.Replace(strings.ToUpper(s.Key))] = s.Key
	}
	sort.Strings(environ)
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		if key, ok := names[name]; ok {
			if err := setValue(c, key, value); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			origins[key] = name
		} else if strings.HasPrefix(name, "ASSAY_RECIPE_") || strings.HasPrefix(name, "ASSAY_RUNTIME_") {
			return fmt.Errorf("%s sets no known key; assay config show lists them", name)
		}
	}
	for _, o := range overrides {
		if err := setValue(c, o.Key, o.Value); err != nil {
			return fmt.Errorf("flag for %s: %w", o.Key, err)
		}
		origins[o.Key] = "flag"
	}
	return nil
}

var envName = strings.NewReplacer(".", "_", "-", "_")

// setValue sets one value, which stands in YAML, and leaves everything beside it as it is: decoded into
// the configuration by itself it would empty the map entry that it belongs to.
func setValue(c *Config, key, value string) error {
	var doc, set yaml.Node
	if err := yaml.Unmarshal([]byte(value), &set); err != nil {
		return err
	}
	node := &yaml.Node{Kind: yaml.ScalarNode, Value: value}
	if len(set.Content) > 0 {
		node = set.Content[0]
	}
	data, err := yaml.Marshal(c)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return err
	}
	at := valueAt(doc.Content[0], key)
	if at == nil {
		return fmt.Errorf("there is no key %s", key)
	}
	*at = *node
	var problems []string
	checkKeys(doc.Content[0], reflect.TypeFor[Config](), "", "", map[string]string{}, &problems)
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "\n"))
	}
	var changed Config
	if err := doc.Decode(&changed); err != nil {
		return err
	}
	*c = changed
	return nil
}

// valueAt finds the value of a dotted key. The keys of maps may hold dots themselves, as hosts do.
func valueAt(n *yaml.Node, key string) *yaml.Node {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		rest, ok := strings.CutPrefix(key, n.Content[i].Value)
		if ok && rest == "" {
			return n.Content[i+1]
		}
		if rest, ok = strings.CutPrefix(rest, "."); ok {
			if found := valueAt(n.Content[i+1], rest); found != nil {
				return found
			}
		}
	}
	return nil
}

// settings flattens a configuration into sorted keys and values.
func settings(c Config, origins map[string]string) []Setting {
	data, err := yaml.Marshal(c)
	if err != nil {
		return nil // unreachable: plain structs marshal
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil // unreachable: it was just written
	}
	var out []Setting
	var walk func(n *yaml.Node, prefix string)
	walk = func(n *yaml.Node, prefix string) {
		if n.Kind == yaml.MappingNode && len(n.Content) > 0 {
			for i := 0; i+1 < len(n.Content); i += 2 {
				walk(n.Content[i+1], join(prefix, n.Content[i].Value))
			}
			return
		}
		var v any
		value := n.Value
		if n.Kind != yaml.ScalarNode && n.Decode(&v) == nil {
			b, err := json.Marshal(v)
			if err == nil {
				value = string(b)
			}
		}
		from := origins[prefix]
		if from == "" {
			from = "default"
		}
		out = append(out, Setting{Key: prefix, Value: value, Origin: from})
	}
	walk(doc.Content[0], "")
	sort.Slice(out, func(i, j int) bool { return out[i].Key < out[j].Key })
	return out
}

// check refuses values that cannot work, naming key, value and what is possible.
// said reports whether somebody set a key, be it to its default.
func (c *Config) check(said func(key string) bool) error {
	var problems []string
	bad := func(key, format string, args ...any) {
		problems = append(problems, ConfigName+": "+key+": "+fmt.Sprintf(format, args...))
	}
	oneOf := func(key, value string, known ...string) {
		for _, k := range known {
			if k == value {
				return
			}
		}
		bad(key, "%q is none of %s", value, strings.Join(known, ", "))
	}
	r, rt := c.Recipe, c.Runtime
	for key, list := range map[string][]string{
		"recipe.discover": r.Discover, "recipe.evidence": r.Evidence, "recipe.entities.of": r.Entities.Of, "recipe.formats": r.Formats,
		"recipe.categories": r.Categories, "recipe.category_by": r.CategoryBy, "recipe.sites": names(r.Sites, r.source),
		"recipe.speakers": r.Speakers, "recipe.planner.agent.tools": r.Planner.Agent.Tools,
	} {
		for i, v := range list {
			if slices.Contains(list[:i], v) {
				bad(key, "%q stands twice; name it once", v)
			}
		}
	}
	for _, d := range r.Discover {
		oneOf("recipe.discover", d, DiscoverListing, DiscoverStored, DiscoverImported)
	}
	for _, e := range r.Evidence {
		oneOf("recipe.evidence", e, EvidenceSearch, EvidencePairs)
	}
	if r.Extract.Extractor != "" {
		oneOf("recipe.extract.extractor", r.Extract.Extractor, giving(annotate.GivesCandidates)...)
	}
	for _, of := range r.Entities.Of {
		oneOf("recipe.entities.of", of, EntitiesOfClaims, EntitiesOfDocuments)
	}
	if r.Judge != "" {
		if !r.agentic() {
			bad("recipe.judge", "a verdict is drafted from what a search step by step found: set recipe.planner.policy to %s (evidence: [%s]), or judge to \"\"", planner.PolicyAgent, EvidenceSearch)
		}
		oneOf("recipe.judge", r.Judge, names(annotate.Judges, func(j annotate.Judge) string { return j.Name })...)
	}
	for _, name := range r.Categories {
		oneOf("recipe.categories", name, names(corpus.Categories, func(c corpus.Category) string { return string(c) })...)
	}
	for _, by := range r.CategoryBy {
		oneOf("recipe.category_by", by, CategoryRule, CategoryModel)
	}
	if len(r.Categories) > 0 && len(r.CategoryBy) == 0 {
		bad("recipe.categories", "category_by is empty, so no claim has a category")
	}
	for _, s := range r.Sites {
		oneOf("recipe.sites", s.Name, names(scrapers.All, func(s scrapers.Site) string { return s.Name })...)
		if what := credential(s.Base); what != "" {
			bad("recipe.sites", "the base of %s carries %s, which every release would show", s.Name, what)
		} else if s.Base != "" && (corpus.Host(s.Base) == "" || !strings.HasPrefix(s.Base, "http")) {
			bad("recipe.sites", "base %q of %s is no origin like https://mirror.example", s.Base, s.Name)
		}
	}
	for key, d := range map[string]string{"recipe.dates.from": r.Dates.From, "recipe.dates.to": r.Dates.To} {
		if _, err := time.Parse(time.DateOnly, d); d != "" && err != nil {
			bad(key, "%q is no date like 2024-12-31", d)
		}
	}
	if r.Dates.From != "" && r.Dates.To != "" && r.Dates.From > r.Dates.To {
		bad("recipe.dates", "from %s is after to %s, so no claim is between them", r.Dates.From, r.Dates.To)
	}
	for source, ratings := range r.Ratings {
		spelled := map[string]string{}
		for _, raw := range sortedKeys(ratings) {
			v, slug := ratings[raw], corpus.Slug(raw)
			if other, twice := spelled[slug]; twice {
				bad("recipe.ratings."+source, "%q and %q are one rating", other, raw)
			}
			spelled[slug] = raw
			oneOf("recipe.ratings."+source+"."+raw, string(v), names(corpus.Verdicts, func(v corpus.Verdict) string { return string(v) })...)
		}
	}
	if _, err := corpus.ProjectionByName(r.Projection); err != nil {
		bad("recipe.projection", "%v", err)
	}
	if _, err := output.FormatsByName(r.Formats); err != nil {
		bad("recipe.formats", "%v", err)
	}
	oneOf("recipe.planner.policy", r.Planner.Policy, planner.PolicyAgent, planner.PolicyRAGuard)
	c.checkAgent(bad, oneOf)
	if why := planner.Retired(r.Planner.Backend); why != "" {
		bad("recipe.planner.backend", "%q cannot be asked any more: %s", r.Planner.Backend, why)
	}
	oneOf("recipe.planner.backend", r.Planner.Backend, names(planner.Backends, func(b planner.Backend) string { return b.Name })...)
	oneOf("recipe.planner.posts", r.Planner.Posts, PostsPool, PostsOAuth, PostsArcticShift)
	c.checkCredentials(bad)
	c.checkInterfaces(bad)
	c.checkFeeds(bad)
	oneOf("recipe.label.protocol", r.Label.Protocol, names(annotate.Protocols, func(p annotate.Protocol) string { return p.Name })...)
	oneOf("recipe.label.mode", r.Label.Mode, "normal", "compat")
	c.checkPanel(said, bad, oneOf)
	c.checkNumbers(bad)
	c.checkRefresh(bad)
	for _, role := range []string{"annotate", "keywords", "zero"} {
		if _, ok := r.Models[role]; !ok && r.asksRole(role) {
			bad("recipe.models", "role %q is missing", role)
		}
	}
	for _, role := range sortedKeys(r.Models) {
		m := r.Models[role]
		if !r.asksRole(role) {
			continue
		}
		if _, ok := rt.Endpoints[m.Endpoint]; !ok {
			bad("recipe.models."+role+".endpoint", "%q is no entry of runtime.endpoints (%s)", m.Endpoint, strings.Join(sortedKeys(rt.Endpoints), ", "))
		}
		// A record names the model that was asked; the word comparer must never stand there as another.
		switch e, ok := rt.Endpoints[m.Endpoint]; {
		case ok && e.Provider == "builtin" && m.Model != "builtin":
			bad("recipe.models."+role+".model", "endpoint %s is the builtin model, so its model is called builtin, not %q; describe your endpoint under runtime.endpoints.%s (provider: openai, base_url: ...)", m.Endpoint, m.Model, m.Endpoint)
		case ok && e.Provider != "builtin" && m.Model == "builtin":
			bad("recipe.models."+role+".model", "endpoint %s is not the builtin model; name the model that it serves", m.Endpoint)
		}
	}
	for name, e := range rt.Endpoints {
		oneOf("runtime.endpoints."+name+".provider", e.Provider, "openai", "builtin")
		if e.Provider == "openai" && e.BaseURL == "" {
			bad("runtime.endpoints."+name+".base_url", "an openai endpoint needs its address, e.g. https://api.openai.com/v1")
		}
		c.checkSecrets(name, e, bad)
		for _, setting := range []struct {
			key, value string
			known      []string
		}{
			{"profile", e.Profile, names(llm.Profiles, func(p llm.Profile) string { return p.Name })},
			{"schema", string(e.Schema), []string{string(llm.SchemaJSON), string(llm.SchemaObject), string(llm.SchemaNone)}},
			{"token_field", e.TokenField, []string{llm.MaxTokensField, llm.MaxCompletionTokensField}},
		} {
			if setting.value != "" {
				oneOf("runtime.endpoints."+name+"."+setting.key, setting.value, setting.known...)
			}
		}
	}
	sort.Strings(problems)
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "\n"))
	}
	return nil
}

// checkNumbers refuses numbers that mean nothing, or that would take the machine down.
func (c *Config) checkNumbers(bad func(key, format string, args ...any)) {
	r, rt := c.Recipe, c.Runtime
	between := func(key string, n, least, most int64) {
		if n < least || n > most {
			bad(key, "%d is not between %d and %d", n, least, most)
		}
	}
	upTo := func(key string, n, most float64) {
		if !(n >= 0 && n <= most) {
			bad(key, "%v is not between 0 and %s", n, strconv.FormatFloat(most, 'f', -1, 64))
		}
	}
	for key, n := range map[string]int{
		"recipe.extract.per_document": r.Extract.PerDocument, "recipe.extract.document_chars": r.Extract.DocumentChars,
		"recipe.label.shuffled": r.Label.Shuffled, "recipe.label.panel.pairs": r.Label.Panel.Pairs,
		"runtime.max_calls": rt.MaxCalls, "recipe.limits.redirects": r.Limits.Redirects,
	} {
		between(key, int64(n), 0, maxCount)
	}
	for key, n := range map[string]int{
		"recipe.planner.per_variant": r.Planner.PerVariant, "recipe.planner.keep": r.Planner.Keep, "recipe.planner.rrf_k": r.Planner.RRF,
	} {
		between(key, int64(n), 1, maxCount)
	}
	between("recipe.planner.variants", int64(r.Planner.Variants), 0, planner.MaxVariants)
	between("recipe.label.samples", int64(r.Label.Samples), 1, annotate.MaxSamples)
	between("runtime.workers", int64(rt.Workers), 0, maxWorkers)
	between("runtime.searxng.at_once", int64(rt.SearXNG.AtOnce), 0, maxWorkers)
	between("recipe.label.document_chars", int64(r.Label.DocumentChars), 200, maxCount)
	for key, n := range map[string]int64{"page": r.Limits.Page, "decompressed": r.Limits.Decompressed, "feed": r.Limits.Feed} {
		between("recipe.limits."+key, n, 0, maxBytes)
	}
	between("runtime.reserve_mib", rt.ReserveMiB, 0, maxReserveMiB)
	upTo("runtime.max_usd", rt.MaxUSD, maxCount)
	times := map[string]time.Duration{"runtime.delay": rt.Delay, "runtime.retry_after_cap": rt.RetryAfterCap}
	for host, d := range rt.HostDelay {
		times["runtime.host_delay."+host] = d
	}
	for role, m := range r.Models {
		at := "recipe.models." + role
		between(at+".max_tokens", int64(m.MaxTokens), 0, maxCount)
		if m.Temperature != nil {
			upTo(at+".temperature", *m.Temperature, 2)
		}
		if m.TopP != nil {
			upTo(at+".top_p", *m.TopP, 1)
		}
	}
	for name, e := range rt.Endpoints {
		at := "runtime.endpoints." + name
		between(at+".concurrency", int64(e.Concurrency), 0, maxWorkers)
		between(at+".rpm", int64(e.RPM), 0, maxCount)
		between(at+".tpm", int64(e.TPM), 0, maxCount)
		times[at+".timeout"] = e.Timeout
		if p := e.Price; p != nil {
			prices := map[string]float64{"input": p.Input, "cached": p.Cached, "output": p.Output}
			if p.Batch != nil {
				prices["batch.input"], prices["batch.output"] = p.Batch.Input, p.Batch.Output
			}
			for what, usd := range prices {
				upTo(at+".price."+what, usd, maxPrice)
			}
		}
	}
	for key, d := range times {
		if d < 0 {
			bad(key, "%s is less than 0s", d)
		}
	}
}

// giving names the extractors that find something of a kind.
func giving(what string) (out []string) {
	for _, x := range annotate.Extractors {
		if x.Gives == what {
			out = append(out, x.Name)
		}
	}
	return out
}

// checkRefresh refuses a policy or a guard rail that says nothing.
func (c *Config) checkRefresh(bad func(key, format string, args ...any)) {
	p := c.Runtime.Refresh
	rules := func(key string, list []AgeRule) {
		for i, rule := range list {
			if rule.Days < 0 || rule.Every < 0 || rule.Days > maxDays || rule.Every > maxDays {
				bad(fmt.Sprintf("%s[%d]", key, i), "days and every are between 0 and %d", maxDays)
			}
			if rule.Days == 0 && i < len(list)-1 {
				bad(fmt.Sprintf("%s[%d]", key, i), "a rule without days is for every age, so the rules after it are never read")
			}
		}
	}
	rules("runtime.refresh.ages", p.Ages)
	rules("runtime.refresh.documents", p.Documents)
	rules("runtime.refresh.posts", p.Posts)
	if p.Known < 1 {
		bad("runtime.refresh.known", "a listing is read until at least 1 known item")
	}
	for _, name := range sortedKeys(p.Sources) {
		rules("runtime.refresh.sources."+name+".ages", p.Sources[name].Ages)
		if p.Sources[name].Known < 0 {
			bad("runtime.refresh.sources."+name+".known", "it cannot be negative")
		}
		site, _, _ := strings.Cut(name, "@")
		if _, err := scrapers.SiteNamed(site); err != nil {
			bad("runtime.refresh.sources."+name, "%v", err)
		}
	}
	for key, share := range map[string]float64{"changed": c.Publish.Changed, "gone": c.Publish.Gone, "failed": c.Publish.Failed} {
		if !(share >= 0 && share <= 1) {
			bad("publish."+key, "a share is between 0 and 1")
		}
	}
	if c.Publish.Least < 1 {
		bad("publish.least", "a guard rail needs at least 1 page")
	}
}

// Values beyond these are slips of the pen that would take the machine down, or turn into no limit at all.
const (
	maxWorkers    = 4096
	maxReserveMiB = 1 << 40
	maxDays       = 36500
	maxCount      = 1e9
	maxBytes      = 1 << 40
	maxPrice      = 1e6 // USD per million tokens
)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// checkSecrets refuses a secret that stands where its place is named. It does not repeat it.
func (c *Config) checkSecrets(name string, e Endpoint, bad func(key, format string, args ...any)) {
	if e.KeyEnv != "" && !variableName.MatchString(e.KeyEnv) {
		bad("runtime.endpoints."+name+".key_env", "it names the environment variable that holds the key, e.g. OPENAI_API_KEY; if this is the key, take it out of the file")
	}
}

// rated applies the recipe's own rating map to a claim whose printed rating no shipped map names: a
// person decided.
func (r Recipe) rated(c corpus.Claim) corpus.Claim {
	if !corpus.HasFlag(c.Flags, corpus.FlagUnmapped) && len(c.Earlier) == 0 {
		return c
	}
	for raw, v := range r.Ratings[c.Source] {
		for i, before := range c.Earlier {
			if before.Rating == "" && corpus.Slug(raw) == corpus.Slug(before.RatingRaw) {
				c.Earlier = slices.Clone(c.Earlier)
				c.Earlier[i].Rating, c.Earlier[i].Verdict6 = string(v), v
			}
		}
		if corpus.Slug(raw) != corpus.Slug(c.RatingRaw) || !corpus.HasFlag(c.Flags, corpus.FlagUnmapped) {
			continue
		}
		c.Rating, c.Verdict6, c.Status = string(v), v, corpus.StatusHuman
		c.Flags = slices.DeleteFunc(slices.Clone(c.Flags), func(f string) bool { return f == corpus.FlagUnmapped })
	}
	return c
}

// Lock writes the recipe in the form that a release carries: every value, defaults included.
func (r Recipe) Lock() ([]byte, error) {
	data, err := yaml.Marshal(struct {
		Recipe Recipe `yaml:"recipe"`
	}{r})
	if err != nil {
		return nil, fmt.Errorf("write recipe.lock: %w", err)
	}
	return append([]byte("# The recipe of this release with every default filled in. Put it into an assay.yaml to rebuild.\n"), data...), nil
}

func names[T any](list []T, name func(T) string) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = name(v)
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

//go:embed profiles/init.yaml
var initYAML []byte

// InitConfig is the commented configuration that a new workspace starts with.
func InitConfig(profile string) ([]byte, error) {
	if _, err := profileYAML(profile); err != nil {
		return nil, err
	}
	text := bytes.Replace(initYAML, []byte("profile: raguard"), []byte("profile: "+profile), 1)
	if profile == "raguard" {
		return text, nil
	}
	text = initSpeakers.ReplaceAll(text, []byte("  speakers: []"))
	return initDates.ReplaceAll(text, []byte(`  dates: {from: "", to: ""}`)), nil
}

// What initYAML says of the profile raguard alone.
var (
	initSpeakers = regexp.MustCompile(`(?m)^  speakers: .*$`)
	initDates    = regexp.MustCompile(`(?m)^  dates: .*$`)
)

// Check reports whether the stages that a build names exist, and its release may be called so.
func (o BuildOptions) Check() error {
	if _, _, err := stageFilter(o); err != nil {
		return err
	}
	return output.CheckName(o.As)
}
