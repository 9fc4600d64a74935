package assay

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/planner"
)

func TestParseConfigErrorsNameThePlaceAndTheWayOut(t *testing.T) {
	for _, test := range []struct{ name, yaml, want string }{
		{"a typo at the top", "recipee:\n  name: x\n", `assay.yaml:1: unknown key "recipee"; did you mean "recipe"?`},
		{"a typo inside", "recipe:\n  name: x\n  speeker: [a]\n", `assay.yaml:3: unknown key "speeker" in recipe; did you mean "speakers"?`},
		{"a typo in a list", "recipe:\n  sites:\n    - {nam: politifact}\n", `assay.yaml:3: unknown key "nam" in recipe.sites[0]; did you mean "name"?`},
		{"a typo in a map", "runtime:\n  endpoints:\n    main: {provider: builtin, base_ulr: x}\n", `did you mean "base_url"?`},
		{"a wrong type", "runtime:\n  workers: many\n", "line 2"},
		{"no YAML", "recipe: [", "assay.yaml"},
		{"an unknown site", "recipe:\n  sites: [{name: politifakt}]\n", `"politifakt" is none of 20minutes, afp`},
		{"an unknown mode", "recipe:\n  label: {mode: quick}\n", `"quick" is none of normal, compat`},
		{"an unknown projection", "recipe:\n  projection: half\n", "known are raguard_paper_text"},
		{"an unknown format", "recipe:\n  formats: [parquett]\n", "jsonl"},
		{"an unknown endpoint", "recipe:\n  models:\n    zero: {endpoint: there, model: m}\n", `"there" is no entry of runtime.endpoints (main)`},
		{"an endpoint without an address", "runtime:\n  endpoints:\n    main: {provider: openai}\n", "base_url"},
		{"a model's name at the builtin endpoint", "recipe:\n  models:\n    zero: {endpoint: main, model: gpt-9}\n", "endpoint main is the builtin model"},
		{"the builtin's name at another endpoint", "runtime:\n  endpoints:\n    main: {provider: openai, base_url: \"http://127.0.0.1:1/v1\"}\n", "endpoint main is not the builtin model"},
		{"a rating mapped to no verdict", "recipe:\n  ratings: {politifact: {maybe: perhaps}}\n", "\"perhaps\" is none of true"},
		{"a date that is none", "recipe:\n  dates: {from: 2000}\n", "is no date like"},
		{"an unknown profile", "recipe:\n  profile: rag\n", "known are gpe, raguard"},
		{"a negative count", "runtime:\n  workers: -1\n", "too small"},
		{"a day that no month has", "recipe:\n  dates: {to: 2023-02-29}\n", "is no date like"},
		{"dates the wrong way round", "recipe:\n  dates: {from: 2024-01-01, to: 2000-01-01}\n", "is after"},
		{"two spellings of one rating", "recipe:\n  ratings: {politifact: {No idea: true, no idea: false}}\n", "are one rating"},
		{"more variants than a search takes", "recipe:\n  planner: {variants: 6}\n", "recipe.planner.variants: 6 are more than the 5 that a search takes"},
		{"a negative limit", "recipe:\n  limits: {page: -1}\n", "recipe.limits.page: the value is too small"},
		{"a negative reserve", "runtime:\n  reserve_mib: -1\n", "too small"},
		{"a reserve that overflows", "runtime:\n  reserve_mib: 9223372036854775807\n", "more than a disk has"},
		{"more workers than a machine has memory for", "runtime:\n  workers: 1000000000\n", "runtime.workers"},
		{"a cap that is no number", "runtime:\n  max_usd: .nan\n", "max_usd"},
		{"a negative delay of a host", "runtime:\n  host_delay: {www.politifact.com: -3s}\n", "runtime.host_delay.www.politifact.com"},
		{"a negative price", "runtime:\n  endpoints:\n    main: {provider: builtin, price: {input: -1, output: 1}}\n", "a price is 0 or more"},
		{"a second document", "recipe:\n  name: x\n---\nruntime:\n  max_usd: 5\n", "second document"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := parseConfig([]byte(test.yaml), nil, nil)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want one with %s", err, test.want)
			}
		})
	}
}

func TestParseConfigRefusesSecretsAndNeverRepeatsThem(t *testing.T) {
	for _, test := range []struct{ name, yaml, key, way string }{
		{"key for its variable", `runtime: {endpoints: {main: {provider: openai, base_url: "https://api.example/v1", key_env: sk-hunter2-hunter2}}}`, "runtime.endpoints.main.key_env", "environment variable"},
		{"password at an endpoint", `runtime: {endpoints: {main: {provider: openai, base_url: "https://me:sk-hunter2-hunter2@api.example/v1"}}}`, "runtime.endpoints.main.base_url", "key_env"},
		{"key in an endpoint's query", `runtime: {endpoints: {main: {provider: openai, base_url: "https://api.example/v1?api-version=2&api-key=hunter2"}}}`, "runtime.endpoints.main.base_url", "key_env"},
		{"password that is no address", `runtime: {endpoints: {main: {provider: openai, base_url: "https://me:hunter2/%zz@api.example/v1"}}}`, "runtime.endpoints.main.base_url", "key_env"},
		{"password at SearXNG", `runtime: {searxng: {base: "https://me:hunter2@search.example"}}`, "runtime.searxng.base", "environment"},
		{"password at the SearXNG that is searched", "recipe: {planner: {backend: searxng}}\nruntime: {searxng: {base: \"http://me:hunter2@127.0.0.1:8888\"}}", "runtime.searxng.base", "environment"},
		{"key at SearXNG", `runtime: {searxng: {base: "https://search.example/?token=hunter2"}}`, "runtime.searxng.base", "environment"},
		{"password at a search engine", `runtime: {search: {brave: {base: "https://me:hunter2@search.example"}}}`, "runtime.search.brave.base", "key_env"},
		{"key at a search engine", `runtime: {search: {brave: {base: "https://search.example?key=hunter2"}}}`, "runtime.search.brave.base", "key_env"},
		{"escaped key at a search engine", `runtime: {search: {brave: {base: "https://search.example?%6bey=hunter2"}}}`, "runtime.search.brave.base", "key_env"},
		{"password at the archive", `runtime: {arctic_shift: {base: "https://hunter2@archive.example"}}`, "runtime.arctic_shift.base", "environment"},
		{"password at Reddit", `runtime: {reddit: {base: "https://me:hunter2@oauth.example"}}`, "runtime.reddit.base", "client_secret_env"},
		{"password where tokens come from", `runtime: {reddit: {token_url: "https://me:hunter2@www.example/token"}}`, "runtime.reddit.token_url", "client_secret_env"},
		{"secret where tokens come from", `runtime: {reddit: {token_url: "https://www.example/token?client_secret=hunter2"}}`, "runtime.reddit.token_url", "client_secret_env"},
		{"key at Fact Check Tools", `runtime: {fact_check_tools: {base: "https://tools.example?key=hunter2"}}`, "runtime.fact_check_tools.base", "key_env"},
		{"signed feed", `recipe: {feeds: [{table: claimreview, url: "https://feed.example/data.json?X-Amz-Signature=hunter2"}]}`, "recipe.feeds[0].url", "environment"},
		{"page with a password as contact", `runtime: {contact: "my crawler, https://me:hunter2@bot.example/"}`, "runtime.contact", "environment"},
		{"mail account as contact", `runtime: {contact: "me:hunter2@mail.example"}`, "runtime.contact", "environment"},
		{"password of a mirror", `recipe: {sites: [{name: politifact, base: "https://me:hunter2@mirror.example"}]}`, "recipe.sites", "every release would show"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := parseConfig([]byte(test.yaml), nil, nil)
			if err == nil || !strings.Contains(err.Error(), "assay.yaml: "+test.key+": ") || !strings.Contains(err.Error(), test.way) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("error = %v, want one of %s that says %s and does not show it", err, test.key, test.way)
			}
		})
	}
	for _, plain := range []string{
		`runtime: {endpoints: {main: {provider: openai, base_url: "https://api.example/v1?api-version=2024-10-21"}}, contact: "mailto:crawl@bot.example"}`,
		`runtime: {contact: "mail: crawl@bot.example, page: https://bot.example/@crawl?author=a&keyword=b"}`,
	} {
		if _, _, err := parseConfig([]byte(plain), nil, nil); err != nil && (strings.Contains(err.Error(), "carries")) {
			t.Errorf("%s: %v", plain, err)
		}
	}
}

func TestParseConfigTakesTheDefaultWhereNothingStands(t *testing.T) {
	want, _, err := parseConfig(nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, settings, err := parseConfig([]byte("recipe:\n  dates:\n  speakers:\n  limits: ~\nruntime:\n  delay:\n"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("configuration (-defaults +got):\n%s", diff)
	}
	for _, s := range settings {
		if strings.HasPrefix(s.Origin, ConfigName) {
			t.Errorf("%s = %s comes from %s, which says nothing about it", s.Key, s.Value, s.Origin)
		}
	}
	if _, _, err := parseConfig([]byte("recipe:\nruntime:\n"), nil, nil); err != nil {
		t.Error(err)
	}
}

func TestParseConfigTellsWhereValuesComeFrom(t *testing.T) {
	c, settings, err := parseConfig([]byte("recipe:\n  name: mine\nruntime:\n  workers: 4\n"),
		[]string{"ASSAY_RUNTIME_MAX_USD=2.5", "HOME=/nowhere", "ASSAY_REAL=x"},
		[]Override{{Key: "runtime.max_calls", Value: "7"}})
	if err != nil {
		t.Fatal(err)
	}
	if c.Recipe.Name != "mine" || c.Runtime.Workers != 4 || c.Runtime.MaxUSD != 2.5 || c.Runtime.MaxCalls != 7 || c.Recipe.Salt != "raguard" {
		t.Errorf("config = %+v", c)
	}
	got := map[string]string{}
	for _, s := range settings {
		got[s.Key] = s.Origin
	}
	for key, want := range map[string]string{
		"recipe.name": "assay.yaml:2", "runtime.workers": "assay.yaml:4", "runtime.max_usd": "ASSAY_RUNTIME_MAX_USD",
		"runtime.max_calls": "flag", "recipe.planner.keep": "profile raguard",
	} {
		if got[key] != want {
			t.Errorf("origin of %s = %q, want %q", key, got[key], want)
		}
	}
}

// Naming one setting of a role keeps the others.
func TestSitesByNameAlone(t *testing.T) {
	c, _, err := parseConfig([]byte("recipe:\n  sites: [politifact, {name: afp, base: \"https://mirror.example\"}]\n"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]SiteRecipe{{Name: "politifact"}, {Name: "afp", Base: "https://mirror.example"}}, c.Recipe.Sites); diff != "" {
		t.Errorf("sites (-want +got):\n%s", diff)
	}
	if _, _, err := parseConfig([]byte("recipe:\n  sites: [politifakt]\n"), nil, nil); err == nil || !strings.Contains(err.Error(), `"politifakt" is none of 20minutes`) {
		t.Errorf("an unknown name: %v", err)
	}
}

func TestParseConfigLaysMappingsOverEachOther(t *testing.T) {
	c, _, err := parseConfig([]byte("recipe:\n  models:\n    zero: {model: builtin, max_tokens: 7}\nruntime:\n  host_delay: {a.example: 2s}\n  endpoints:\n    other: {provider: builtin}\n"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	zero := c.Recipe.Models["zero"]
	if zero.Endpoint != "main" || zero.MaxTokens != 7 || zero.Temperature == nil || len(c.Recipe.Models) != 3 {
		t.Errorf("role zero = %+v of %d", zero, len(c.Recipe.Models))
	}
	if len(c.Runtime.HostDelay) != 2 || len(c.Runtime.Endpoints) != 2 {
		t.Errorf("host delays %v, endpoints %v", c.Runtime.HostDelay, c.Runtime.Endpoints)
	}
	if c, _, err = parseConfig([]byte("runtime:\n  host_delay: {}\n"), nil, nil); err != nil || len(c.Runtime.HostDelay) != 0 {
		t.Errorf("an empty mapping leaves %v (%v)", c.Runtime.HostDelay, err)
	}
	if _, _, err = parseConfig([]byte("runtime:\n  workers: 1\n  workers: 2\n"), nil, nil); err == nil || !strings.Contains(err.Error(), "line 3") {
		t.Errorf("a key that stands twice: %v", err)
	}
}

func TestParseConfigRefusesUnknownVariables(t *testing.T) {
	_, _, err := parseConfig(nil, []string{"ASSAY_RUNTIME_WORKER=4"}, nil)
	if err == nil || !strings.Contains(err.Error(), "ASSAY_RUNTIME_WORKER") {
		t.Errorf("error = %v, want one that names the variable", err)
	}
}

// A single value of a map's entry is set without emptying the rest of the entry.
func TestVariablesSetOneValue(t *testing.T) {
	base, _, err := parseConfig(initYAML, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := base
	role := base.Recipe.Models["annotate"]
	role.MaxTokens = 9
	want.Recipe.Models = maps.Clone(base.Recipe.Models)
	want.Recipe.Models["annotate"] = role
	want.Recipe.Discover = []string{DiscoverStored}
	want.Runtime.HostDelay = maps.Clone(base.Runtime.HostDelay)
	want.Runtime.HostDelay["www.politifact.com"] = time.Minute
	want.Runtime.Resolve = map[string]string{"a.example": "127.0.0.1:80"}
	got, _, err := parseConfig(initYAML, []string{
		"ASSAY_RECIPE_MODELS_ANNOTATE_MAX_TOKENS=9", "ASSAY_RECIPE_DISCOVER=[stored]", "ASSAY_RUNTIME_HOST_DELAY_WWW_POLITIFACT_COM=1m",
	}, []Override{{Key: "runtime.resolve", Value: `{a.example: "127.0.0.1:80"}`}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	if _, _, err := parseConfig(nil, nil, []Override{{Key: "runtime.max_usdd", Value: "1"}}); err == nil || !strings.Contains(err.Error(), "runtime.max_usdd") {
		t.Errorf("error = %v, want one that names the key", err)
	}
}

func TestLoadConfigWithoutWorkspaceSaysHowToMakeOne(t *testing.T) {
	_, _, err := LoadConfig(t.TempDir(), nil)
	if err == nil || !strings.Contains(err.Error(), "assay init") {
		t.Errorf("error = %v, want advice", err)
	}
}

// The recipe that a release carries must be able to rebuild it.
func TestLockIsAConfiguration(t *testing.T) {
	c, _, err := parseConfig(initYAML, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	lock, err := c.Recipe.Lock()
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := parseConfig(lock, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	relock, err := again.Recipe.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if string(lock) != string(relock) {
		t.Errorf("lock changes when it is read:\n%s\n%s", lock, relock)
	}
}

func TestSpoolKeepsTheRowOfLowestRank(t *testing.T) {
	s, err := newSpool[string](t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	for _, row := range []struct{ key, rank, text string }{
		{"b", "2", "later"}, {"a", "1", "alpha"}, {"b", "1", "earlier"}, {"b", "3", "last"},
	} {
		if err := s.add(row.key, row.rank, row.text); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // it may be read again
		var got []string
		for row, err := range s.sorted() {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, row)
		}
		if strings.Join(got, " ") != "alpha earlier" {
			t.Errorf("rows = %q", got)
		}
	}
	if _, err := s.get("c"); err == nil {
		t.Error("a missing row is found")
	}
}

func TestReadPromptsRefusesANameThatOverridesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "raguardd.txt"), []byte("--- user\nx"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readPrompts(dir); err == nil || !strings.Contains(err.Error(), "overrides no shipped prompt") {
		t.Errorf("error = %v", err)
	}
}

func TestCatalogListsEveryKind(t *testing.T) {
	for _, kind := range CatalogKinds() {
		entries, err := Catalog(kind)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Name == "" || e.Doc == "" {
				t.Errorf("%s: %+v has no name or no doc", kind, e)
			}
		}
	}
	if _, err := Catalog("sights"); err == nil || !strings.Contains(err.Error(), "sites") {
		t.Errorf("error = %v, want the known kinds", err)
	}
}

// Every profile has the settings with which the search engines come.
func TestProfilesHaveEngines(t *testing.T) {
	for _, profile := range Profiles() {
		c, _, err := parseConfig([]byte("recipe: {profile: "+profile+"}\n"), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(planner.Accesses(), c.Runtime.Search); diff != "" {
			t.Errorf("%s (-want +got):\n%s", profile, diff)
		}
	}
}
