package assay

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/planner"
	"assay/scrapers"
)

func TestParseConfigErrorsNameThePlaceAndTheWayOut(t *testing.T) {
	for _, test := range []struct{ name, yaml, want string }{
		{"a typo at the top", "recipee:\n  name: x\n", `assay.yaml:1: unknown key "recipee"; did you mean "recipe"?`},
		{"a typo inside", "recipe:\n  name: x\n  speeker: [a]\n", `assay.yaml:3: unknown key "speeker" in recipe; did you mean "speakers"?`},
		{"a typo in a list", "recipe:\n  sites:\n    - {nam: politifact}\n", `assay.yaml:3: unknown key "nam" in recipe.sites[0]; did you mean "name"?`},
		{"a typo in a map", "runtime:\n  endpoints:\n    main: {provider: builtin, base_ulr: x}\n", `did you mean "base_url"?`},
		{"a wrong type", "runtime:\n  workers: many\n", `assay.yaml:2: runtime.workers: "many" stands where a whole number is wanted`},
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
		{"a negative count", "runtime:\n  workers: -1\n", "runtime.workers: -1 is not between 0 and 4096"},
		{"a day that no month has", "recipe:\n  dates: {to: 2023-02-29}\n", "is no date like"},
		{"dates the wrong way round", "recipe:\n  dates: {from: 2024-01-01, to: 2000-01-01}\n", "is after"},
		{"two spellings of one rating", "recipe:\n  ratings: {politifact: {No idea: true, no idea: false}}\n", "are one rating"},
		{"more variants than a search takes", "recipe:\n  planner: {variants: 6}\n", "recipe.planner.variants: 6 is not between 0 and 5"},
		{"a negative limit", "recipe:\n  limits: {page: -1}\n", "recipe.limits.page: -1 is not between 0 and 1099511627776"},
		{"a negative reserve", "runtime:\n  reserve_mib: -1\n", "runtime.reserve_mib: -1 is not between 0 and"},
		{"a reserve that overflows", "runtime:\n  reserve_mib: 9223372036854775807\n", "runtime.reserve_mib: 9223372036854775807 is not between 0 and"},
		{"more workers than a machine has memory for", "runtime:\n  workers: 1000000000\n", "runtime.workers: 1000000000 is not between 0 and 4096"},
		{"a cap that is no number", "runtime:\n  max_usd: .nan\n", "assay.yaml:2: runtime.max_usd: .nan stands where a number is wanted"},
		{"tools that search nothing", "recipe:\n  planner: {policy: gpe, agent: {tools: [stop, memory]}}\n", "recipe.planner.agent.tools: stop, memory search nothing: name at least one of arxiv, factcheck, news"},
		{"engines of nothing", "recipe:\n  planner: {policy: gpe, agent: {engines: {\"*\": \"\"}}}\n", "recipe.planner.agent.engines: no tool has an engine, so nothing is searched: give \"*\", or one of arxiv"},
		{"an engine of a tool that is not used", "recipe:\n  planner: {policy: gpe, agent: {tools: [news], engines: {\"*\": local, news: \"\"}}}\n", "recipe.planner.agent.engines: no tool has an engine"},
		{"a page of results that no engine has", "recipe:\n  planner: {agent: {per_action: 1e9}}\n", "recipe.planner.agent.per_action: 1000000000 is not between 0 and 100"},
		{"keywords of nobody", "recipe:\n  models: {keywords: {endpoint: gone, model: m}}\n", "recipe.models.keywords.endpoint"},
		{"a negative delay of a host", "runtime:\n  host_delay: {www.politifact.com: -3s}\n", "runtime.host_delay.www.politifact.com"},
		{"a negative price", "runtime:\n  endpoints:\n    main: {provider: builtin, price: {input: -1, output: 1}}\n", "runtime.endpoints.main.price.input: -1 is not between 0 and 1000000"},
		{"a fraction of a sample", "recipe:\n  label: {samples: 5.5}\n", "assay.yaml:2: recipe.label.samples: 5.5 stands where a whole number is wanted"},
		{"a fraction in a list", "runtime:\n  refresh:\n    ages: [{days: 1.5, every: 1}]\n", "assay.yaml:3: runtime.refresh.ages[0].days: 1.5 stands where a whole number is wanted"},
		{"a number in quotation marks", "runtime: {max_calls: \"5\"}\n", `runtime.max_calls: "5" stands where a whole number is wanted`},
		{"more than a number holds", "runtime: {max_calls: 1e20}\n", "runtime.max_calls: 1e20 stands where a smaller whole number is wanted"},
		{"more digits than a number holds", "recipe: {planner: {keep: 99999999999999999999}}\n", "recipe.planner.keep: 99999999999999999999 stands where a smaller whole number is wanted"},
		{"a negative seed", "recipe: {label: {seed: -1}}\n", "recipe.label.seed: -1 stands where a whole number of 0 or more is wanted"},
		{"no end of money", "runtime: {max_usd: .inf}\n", "runtime.max_usd: .inf stands where a number is wanted"},
		{"a slip of the pen", "recipe: {planner: {keep: 10000000000}}\n", "recipe.planner.keep: 10000000000 is not between 1 and 1000000000"},
		{"a limit that overflows", "recipe: {limits: {page: 9223372036854775807}}\n", "recipe.limits.page: "},
		{"a temperature", "recipe: {models: {zero: {temperature: -0.1}}}\n", "recipe.models.zero.temperature: -0.1 is not between 0 and 2"},
		{"a share of words", "recipe: {models: {zero: {top_p: 1.5}}}\n", "recipe.models.zero.top_p: 1.5 is not between 0 and 1"},
		{"fewer tokens than none", "recipe: {models: {zero: {max_tokens: -5}}}\n", "recipe.models.zero.max_tokens: -5 is not between 0 and 1000000000"},
		{"fewer requests than none", "runtime: {endpoints: {main: {rpm: -1}}}\n", "runtime.endpoints.main.rpm: -1 is not between 0 and 1000000000"},
		{"a negative time", "runtime: {endpoints: {main: {timeout: -5s}}}\n", "runtime.endpoints.main.timeout: -5s is less than 0s"},
		{"a price of batches", "runtime: {endpoints: {main: {price: {input: 1, output: 1, batch: {input: -1, output: 1}}}}}\n", "runtime.endpoints.main.price.batch.input: -1 is not"},
		{"steps of a search", "recipe: {planner: {agent: {max_actions: -1}}}\n", "recipe.planner.agent.max_actions: -1 is not between 0 and 1000"},
		{"a time without its unit", "runtime:\n  delay: 3\n", "assay.yaml:2: runtime.delay: 3 stands where a time with its unit, such as 30s, 5m or 0s, is wanted"},
		{"a word for a switch", "recipe: {label: {quote_check: maybe}}\n", `recipe.label.quote_check: "maybe" stands where true or false is wanted`},
		{"a list for a text", "recipe:\n  name: [a]\n", "assay.yaml:2: recipe.name: a list stands where a single text is wanted"},
		{"a text for a list", "recipe: {speakers: al-gore}\n", `recipe.speakers: "al-gore" stands where a list, such as [a, b], is wanted`},
		{"a list for settings", "recipe: []\n", "assay.yaml:1: recipe: a list stands where a group of settings, such as {key: value}, is wanted"},
		{"no settings at all", "recipe\n", `assay.yaml:1: the file: "recipe" stands where a group of settings`},
		{"two wrong types", "runtime: {workers: a, max_calls: b}\n", "runtime.workers: \"a\" stands where a whole number is wanted\nassay.yaml:1: runtime.max_calls: \"b\""},
		{"what is named twice", "recipe: {entities: {of: [claims, claims]}}\n", `recipe.entities.of: "claims" stands twice; name it once`},
		{"a site twice", "recipe: {sites: [afp, who, afp]}\n", `recipe.sites: "afp" stands twice; name it once`},
		{"a panel of nobody", "recipe: {label: {panel: {pairs: 100}}}\n", "recipe.label.panel.pairs: there is no panel without annotators"},
		{"a panel of nobody by name", "recipe: {label: {panel: {annotators: [], pairs: 100}}}\n", "recipe.label.panel.pairs: there is no panel without annotators"},
		{"what nobody agrees on", "recipe: {label: {panel: {consensus: unanimous}}}\n", "recipe.label.panel.consensus: there is no panel without annotators"},
		{"a judge without evidence", "recipe: {judge: gpe}\n", "recipe.judge: a verdict is drafted from what a search step by step found: set recipe.planner.policy to gpe"},
		{"a judge of a profile that is told apart", "recipe: {profile: gpe, judge: gpe, planner: {policy: raguard}}\n", "recipe.judge: a verdict is drafted"},
		{"a second document", "recipe:\n  name: x\n---\nruntime:\n  max_usd: 5\n", "second document"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := parseConfig([]byte(test.yaml), nil, nil)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want one with %s", err, test.want)
			}
			if err != nil && (strings.Contains(err.Error(), "unmarshal") || strings.Contains(err.Error(), "!!")) {
				t.Errorf("error = %v, which speaks of the program and not of the file", err)
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

// Who writes no keywords need not say by which model.
func TestKeywordsOfNobody(t *testing.T) {
	const models = "  models: {keywords: {endpoint: gone, model: m}, plan: {endpoint: main, model: builtin}}\n"
	for _, recipe := range []string{
		"recipe:\n  planner: {policy: gpe}\n" + models,
		"recipe:\n  planner: {variants: 0}\n" + models,
		"recipe:\n  evidence: [pairs]\n" + models,
	} {
		if _, _, err := parseConfig([]byte(recipe), nil, nil); err != nil {
			t.Errorf("%s%v", recipe, err)
		}
	}
	if _, _, err := parseConfig([]byte("recipe:\n  planner: {policy: gpe}\n  models: {keywords: {endpoint: gone, model: m}}\n"), nil, nil); err == nil {
		t.Error("nobody directs the search, and that is taken")
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

// A variable and a flag are held to what a file may say, and name their key.
func TestVariablesAreTyped(t *testing.T) {
	for variable, want := range map[string]string{
		"ASSAY_RUNTIME_WORKERS=many":       `ASSAY_RUNTIME_WORKERS: runtime.workers: "many" stands where a whole number is wanted`,
		"ASSAY_RECIPE_LABEL_SAMPLES=5.5":   "ASSAY_RECIPE_LABEL_SAMPLES: recipe.label.samples: 5.5 stands where a whole number is wanted",
		"ASSAY_RECIPE_SPEAKERS=al-gore":    `ASSAY_RECIPE_SPEAKERS: recipe.speakers: "al-gore" stands where a list, such as [a, b], is wanted`,
		"ASSAY_RECIPE_LABEL_PANEL_PAIRS=7": "recipe.label.panel.pairs: there is no panel without annotators",
	} {
		if _, _, err := parseConfig(nil, []string{variable}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", variable, err, want)
		}
	}
}

// A recipe that takes the search step by step out of a profile takes its judge with it.
func TestJudgeOfAProfile(t *testing.T) {
	for policy, want := range map[string]string{"gpe": "gpe", "raguard": ""} {
		c, _, err := parseConfig([]byte("recipe: {profile: gpe, planner: {policy: "+policy+"}}\n"), nil, nil)
		if err != nil || c.Recipe.Judge != want {
			t.Errorf("policy %s: judge %q, %v; want %q", policy, c.Recipe.Judge, err, want)
			continue
		}
		lock, err := c.Recipe.Lock()
		if err != nil {
			t.Fatal(err)
		}
		if again, _, err := parseConfig(lock, nil, nil); err != nil || again.Recipe.Judge != want {
			t.Errorf("policy %s: its lock gives judge %q, %v", policy, again.Recipe.Judge, err)
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
	if _, _, err = parseConfig([]byte("runtime:\n  workers: 1\n  workers: 2\n"), nil, nil); err == nil || err.Error() != `assay.yaml:3: mapping key "workers" already defined at line 2` {
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

// X is asked by those who name it alone, whatever stands behind the other tools.
func TestXIsOffUnlessItIsNamed(t *testing.T) {
	for _, c := range []struct{ yaml, want string }{
		{"recipe: {profile: gpe}\n", ""},
		{"recipe: {profile: raguard, planner: {policy: gpe, agent: {engines: {\"*\": brave}}}}\n", ""},
		{"recipe: {profile: gpe, planner: {agent: {engines: {x: x}}}}\nruntime: {search: {x: {on: true}}}\n", "x"},
	} {
		parsed, _, err := parseConfig([]byte(c.yaml), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		engine, named := parsed.Recipe.Planner.Agent.Engines["x"]
		if !named || engine != c.want {
			t.Errorf("%s: the engine of x is %q, named %t", c.yaml, engine, named)
		}
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

// The ledger of ratings can be read: what becomes of each word, and the page that shows it.
func TestCatalogTellsTheRatingLedger(t *testing.T) {
	ledger, err := Catalog("rating-maps")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]Entry{}
	for _, e := range ledger {
		got[e.Name] = e
		for _, w := range e.Ratings {
			if _, err := scrapers.SiteNamed(e.Name); err == nil && w.Page == "" {
				t.Errorf("%s: %+v has no page", e.Name, w)
			}
		}
	}
	words := func(name string, want ...RatingWord) {
		for _, w := range want {
			if !slices.Contains(got[name].Ratings, w) {
				t.Errorf("%s lacks %+v, it has %+v", name, w, got[name].Ratings)
			}
		}
	}
	words("newtral",
		RatingWord{Word: "verdad_a_medias", Verdict: "half_true", Page: "https://www.newtral.es/lista-espera-sanidad-gobierno/20221006/"},
		RatingWord{Word: "enga\u00f1oso", Page: "https://www.newtral.es/lista-espera-sanidad-gobierno/20221006/"})
	words("politifact", RatingWord{Word: "full_flop", Excluded: "flip_o_meter", Page: "https://www.politifact.com/factchecks/2013/jan/09/kasim-reed/atlanta-mayor-shifts-same-sex-marriage/"})
	words("averitec", RatingWord{Word: "refuted", Verdict: "false"})
	if doc := got["newtral"].Doc; doc != "falso (false), verdad_a_medias (half_true), verdadero (true); for a person: enga\u00f1oso" {
		t.Errorf("newtral: %s", doc)
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
