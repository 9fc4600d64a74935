package assay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"assay/annotate"
	"assay/fetch"
	"assay/kv"
	"assay/llm"
	"assay/pipeline"
	"assay/planner"
	"assay/scrapers"
)

// A Check is one thing that doctor looked at.
type Check struct {
	Name   string `json:"name"`
	State  string `json:"state"`
	Detail string `json:"detail"`
	Help   string `json:"help,omitzero"` // what to do about a failure or a warning, on one line
}

// The values of Check.State. Only a failure makes a workspace unfit; what could not be looked at is
// skipped.
const (
	CheckOK   = "ok"
	CheckWarn = "warn"
	CheckFail = "fail"
	CheckSkip = "skip"
)

// Checkup is what doctor found.
type Checkup struct {
	Checks    []Check             `json:"checks"`
	Canaries  []llm.Canary        `json:"canaries,omitempty"`
	Injection *annotate.Injection `json:"injection,omitempty"`
}

// Failed counts failures.
func (c Checkup) Failed() int {
	n := 0
	for _, k := range c.Checks {
		if k.State == CheckFail {
			n++
		}
	}
	return n
}

// DoctorOptions says how far an examination goes.
type DoctorOptions struct {
	Offline bool // ask nothing of the network
	Model   bool // probe every model anew, and try the shipped attacks on the one that annotates
	Open    OpenOptions
}

// Examine looks at a workspace and at what it reaches. What is wrong is in the Checkup; an error means
// that the examination was ended. Models that were never probed are probed, with two tiny calls each.
func Examine(ctx context.Context, dir string, o DoctorOptions) (Checkup, error) {
	d := &doctor{o: o, dir: dir, now: o.Open.Now, getenv: lookup(o.Open.Environ)}
	if d.now == nil {
		d.now = time.Now
	}
	config, settings, err := LoadConfig(dir, o.Open.Environ, o.Open.Overrides...)
	if err != nil {
		help := "edit " + filepath.Join(dir, ConfigName) + "; assay config show lists every key"
		if _, missing := os.Stat(filepath.Join(dir, ConfigName)); errors.Is(missing, os.ErrNotExist) {
			help = "run assay init, or name the folder of a workspace with -C"
		}
		d.fail("configuration", err.Error(), help)
		return d.report, nil
	}
	d.config = config
	set := 0
	for _, s := range settings {
		if strings.HasPrefix(s.Origin, ConfigName) {
			set++
		}
	}
	d.ok("configuration", fmt.Sprintf("%s over profile %s, %d settings in %s", config.Recipe.Name, config.Recipe.Profile, set, ConfigName))
	d.contact()
	d.keys()
	d.addresses()
	d.search()
	d.disk()
	if err := d.open(ctx); err != nil {
		return d.report, err
	}
	defer d.close()
	if err := d.health(); err != nil {
		return d.report, err
	}
	if err := d.endpoints(ctx); err != nil {
		return d.report, err
	}
	if err := d.robots(ctx); err != nil {
		return d.report, err
	}
	d.clock()
	if o.Model {
		return d.report, d.injection(ctx)
	}
	return d.report, nil
}

func lookup(environ []string) func(string) string {
	return func(name string) string {
		for _, e := range slices.Backward(environ) {
			if value, ok := strings.CutPrefix(e, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

// A doctor goes through the checks in order; later ones use what earlier ones opened.
type doctor struct {
	o      DoctorOptions
	dir    string
	config Config
	getenv func(string) string
	now    func() time.Time
	report Checkup

	w      *Workspace // nil while another process holds it, or where it cannot be opened
	models *llm.Client
	memory *kv.Store // under models while w is nil
	fetch  *fetch.Client

	clocks []clockReading
}

type clockReading struct {
	who  string
	skew time.Duration // theirs minus ours
}

func (d *doctor) add(state, name, detail, help string) {
	d.report.Checks = append(d.report.Checks, Check{Name: name, State: state, Detail: detail, Help: help})
}

func (d *doctor) ok(name, detail string)         { d.add(CheckOK, name, detail, "") }
func (d *doctor) skip(name, why string)          { d.add(CheckSkip, name, why, "") }
func (d *doctor) warn(name, detail, help string) { d.add(CheckWarn, name, detail, help) }
func (d *doctor) fail(name, detail, help string) { d.add(CheckFail, name, detail, help) }

func (d *doctor) contact() {
	switch c := d.config.Runtime.Contact; {
	case c != "":
		d.ok("contact", c)
	case d.config.Recipe.asksTheWeb():
		d.warn("contact", "none: only a build with --replay will run", "set runtime.contact in "+ConfigName+" to a mail address or page that tells sites who asks")
	default:
		d.ok("contact", "none, and this recipe asks no site")
	}
}

// keys looks for the variables that hold secrets, by name; their values are shown nowhere.
func (d *doctor) keys() {
	wanted := map[string]string{}
	for name, e := range d.config.Runtime.Endpoints {
		if e.KeyEnv != "" {
			wanted[e.KeyEnv] = "endpoint " + name
		}
	}
	if r := d.config.Runtime.Reddit; d.config.Recipe.asksReddit() {
		wanted[r.ClientIDEnv], wanted[r.ClientSecretEnv] = "Reddit", "Reddit"
	}
	for _, engine := range d.config.Recipe.engines() {
		if at, ok := d.config.Runtime.Search[engine]; ok && at.KeyEnv != "" {
			wanted[at.KeyEnv] = engine
		}
	}
	if d.config.Recipe.searchesClaims() {
		wanted[d.config.Runtime.FactCheckTools.KeyEnv] = "Fact Check Tools"
	}
	for _, env := range slices.Sorted(maps.Keys(wanted)) {
		value := d.getenv(env)
		switch {
		case value == "":
			d.fail("key "+env, "it is not set; "+wanted[env]+" needs it", "export "+env+"=... in the shell that runs assay")
		case value != strings.TrimSpace(value):
			d.fail("key "+env, "its value begins or ends with white space", "export "+env+" again, without blanks and line ends")
		default:
			d.ok("key "+env, "set, for "+wanted[env])
		}
	}
	if len(wanted) == 0 {
		d.ok("keys", "none needed")
	}
}

// addresses shows what opens the guard and what is dialled elsewhere.
func (d *doctor) addresses() {
	rt := d.config.Runtime
	if len(rt.AllowPrivate) == 0 {
		d.ok("allow-list", "no private address may be fetched")
	} else {
		d.warn("allow-list", "may be fetched although private: "+strings.Join(rt.AllowPrivate, ", "), "remove what you do not need from runtime.allow_private")
	}
	if len(rt.Resolve) == 0 {
		d.ok("resolve", "no host is dialled elsewhere")
		return
	}
	var parts []string
	for _, host := range sortedKeys(rt.Resolve) {
		parts = append(parts, host+" at "+rt.Resolve[host])
	}
	d.warn("resolve", strings.Join(parts, ", "), "remove runtime.resolve for a build from the live web")
}

// search shows through what evidence is searched, what that costs, and whether it is about to end.
func (d *doctor) search() {
	for _, engine := range d.config.Recipe.engines() {
		if b, err := planner.BackendNamed(engine); err == nil { // the configuration was checked
			d.engine(b)
		}
	}
}

func (d *doctor) engine(b planner.Backend) {
	name, detail := "search "+b.Name, b.Doc
	if at, ok := d.config.Runtime.Search[b.Name]; ok {
		detail = at.Base
		if at.USDPer1000 > 0 {
			detail += fmt.Sprintf(", $%g for 1,000 (price of %s)", at.USDPer1000, cmp.Or(at.PriceDate, "an unknown day"))
		}
	}
	switch {
	case b.Ended(d.now()):
		d.fail(name, detail+"; it ended on "+b.Ends, "choose another one: assay list backends")
	case b.Ends != "":
		d.warn(name, detail+"; it ends on "+b.Ends, "choose another one before that day")
	default:
		d.ok(name, detail)
	}
}

// disk compares the free space with what the store keeps free.
func (d *doctor) disk() {
	at := filepath.Join(d.dir, stateDir)
	if _, err := os.Stat(at); err != nil {
		at = d.dir
	}
	free, err := kv.FreeBytes(at)
	if err != nil {
		d.fail("disk", err.Error(), "see whether the folder can be read")
		return
	}
	reserve := d.config.Runtime.ReserveMiB << 20
	detail := fmt.Sprintf("%d MiB free, %d MiB are kept free", free>>20, reserve>>20)
	switch {
	case free <= reserve:
		d.fail("disk", detail, "make room: a build stops before the disk is full; assay gc drops what nothing needs")
	case free < 4*reserve:
		d.warn("disk", detail, "a build stops when it reaches the reserve (runtime.reserve_mib)")
	default:
		d.ok("disk", detail)
	}
}

// open opens the store, or finds out who holds it. Without the store the models are still asked, and
// nothing of that is kept.
func (d *doctor) open(ctx context.Context) error {
	live := !d.o.Offline && d.config.Runtime.Contact != ""
	open := d.o.Open
	open.Offline, open.Online = !live, live
	w, err := Open(ctx, d.dir, open)
	var locked *kv.LockedError
	switch {
	case ctx.Err() != nil:
		return errors.Join(ctx.Err(), err)
	case errors.As(err, &locked):
		d.warn("lock", locked.Error(), "wait for it, or ask it: assay status works while a build runs")
		d.skip("store", "another process holds it")
	case err != nil:
		d.fail("store", err.Error(), "if it is damaged, restore a backup: assay restore")
	default:
		d.ok("lock", "free")
		d.w, d.fetch = w, w.fetch
	}
	return d.openModels()
}

func (d *doctor) openModels() (err error) {
	ask := OpenOptions{Offline: d.o.Offline, Now: d.o.Open.Now, Sleep: d.o.Open.Sleep}
	w := d.w
	if w == nil {
		if d.memory, err = kv.OpenMemory(); err != nil {
			return err
		}
		w = &Workspace{Dir: d.dir, Config: d.config, store: d.memory}
		if w.prompts, err = readPrompts(filepath.Join(d.dir, "prompts")); err != nil {
			w.prompts = nil // it is reported with the prompts
		}
		if w.prices, _, err = readPrices(d.dir); err != nil {
			w.prices = llm.PriceTable{} // it is reported with the prices
		}
	} else if err := w.llm.Close(); err != nil {
		return err
	}
	if err := w.openModels(ask); err != nil {
		d.fail("endpoints", err.Error(), "edit runtime.endpoints in "+ConfigName)
		return nil
	}
	d.models = w.llm
	return nil
}

func (d *doctor) close() {
	if d.w != nil {
		if err := d.w.Close(); err != nil {
			d.fail("store", "it could not be closed: "+err.Error(), "see whether the disk is full or broken")
		}
		return
	}
	if d.models != nil {
		_ = d.models.Close() // nothing was kept
	}
	if d.memory != nil {
		_ = d.memory.Close()
	}
}

// health counts what the store and the index hold, and says which prompts are not the shipped ones.
func (d *doctor) health() error {
	prompts, err := readPrompts(filepath.Join(d.dir, "prompts"))
	switch {
	case err != nil:
		d.fail("prompts", err.Error(), "assay list prompts names what can be overridden")
	case len(prompts) == 0:
		d.ok("prompts", "as shipped")
	default:
		d.overridden(prompts)
	}
	d.prices()
	if d.w == nil {
		return nil
	}
	size, err := d.w.store.Size()
	records := 0
	for _, bucket := range d.w.store.Buckets() {
		n, countErr := kv.In[[]byte](d.w.store, bucket, 1).Count("")
		records, err = records+n, errors.Join(err, countErr)
	}
	if err == nil {
		d.ok("store", fmt.Sprintf("%d records in %d buckets, %d MiB", records, len(d.w.store.Buckets()), size>>20))
	} else {
		d.fail("store", err.Error(), "restore a backup: assay restore")
	}
	pool, err := d.w.tables.Pool.Count("")
	if err != nil {
		return err
	}
	switch why := d.w.index.Rebuilt(); {
	case d.w.index.Len() != pool:
		d.fail("index", fmt.Sprintf("%d documents, and the pool has %d", d.w.index.Len(), pool), "delete "+filepath.Join(d.dir, stateDir, "index")+"; it is made again")
	case why != "":
		d.warn("index", fmt.Sprintf("%d documents; it was made again: %s", pool, why), "nothing to do unless this happens often")
	default:
		d.ok("index", fmt.Sprintf("%d documents, caught up", pool))
	}
	return nil
}

// prices says where prices are from, and which models of the recipe have none.
func (d *doctor) prices() {
	table, own, err := readPrices(d.dir)
	if err != nil {
		d.fail("prices", err.Error(), "compare it with what assay import prices writes")
		return
	}
	detail := "as shipped, of " + table.Date
	if own {
		detail = PricesName + " of " + table.Date + fmt.Sprintf(" (%d models with those shipped)", len(table.Models))
	}
	var unknown, unbilled []string
	for _, role := range sortedKeys(d.config.Recipe.Models) {
		m := d.config.Recipe.Models[role]
		e, ok := d.config.Runtime.Endpoints[m.Endpoint]
		_, known := table.Lookup(m.Model)
		switch {
		case !ok || known || e.BaseURL == "" || e.Price != nil || slices.Contains(unknown, m.Model) || slices.Contains(unbilled, m.Model):
		case onThisMachine(e.BaseURL):
			unbilled = append(unbilled, m.Model)
			detail += "; " + fmt.Sprintf(unbilledText, m.Model)
		default:
			unknown = append(unknown, m.Model)
		}
	}
	if len(unknown) == 0 {
		d.ok("prices", detail)
		return
	}
	consequence := "what they cost is not told"
	if d.config.Runtime.MaxUSD > 0 {
		consequence = "a build with max_usd ends at their first call"
	}
	d.warn("prices", fmt.Sprintf("%s; none for %s: %s", detail, strings.Join(unknown, ", "), consequence),
		"name them in "+PricesName+" (assay import prices FILE), or give their endpoints a price")
}

// overridden checks that the prompts of a workspace can be read as templates.
func (d *doctor) overridden(prompts map[string]string) {
	names := sortedKeys(prompts)
	for _, name := range names {
		t := *Prompts()[name]
		var err error
		if t.System, t.User, err = llm.ParsePrompt(prompts[name]); err == nil {
			err = t.Check()
		}
		if err != nil {
			d.fail("prompts", "prompts/"+name+".txt: "+err.Error(), "compare it with the shipped one")
			return
		}
		if !strings.Contains(t.User, "{{fence") {
			d.warn("prompts", "prompts/"+name+".txt puts nothing between markers", "put what comes from documents into {{fence ...}}: they may give orders")
			return
		}
	}
	d.ok("prompts", "reworded here: "+strings.Join(names, ", "))
}

// asked is a model that the recipe asks.
type asked struct{ endpoint, model string }

// modelsInUse lists what the recipe's roles ask, each once.
func (r Recipe) modelsInUse() []asked {
	var all []asked
	for _, role := range sortedKeys(r.Models) {
		if !r.asksRole(role) {
			continue
		}
		a := asked{r.Models[role].Endpoint, r.Models[role].Model}
		if !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	return all
}

// canaries lists what the models in use were found to do. Where an endpoint's canary is set, a model
// that was never probed is probed first, if anything may be asked.
func (w *Workspace) canaries(ctx context.Context, ask bool) ([]llm.Canary, error) {
	var all []llm.Canary
	for _, a := range w.Config.Recipe.modelsInUse() {
		at := w.Config.Runtime.Endpoints[a.endpoint]
		if w.llm.Inside(a.endpoint) {
			continue
		}
		k, known, err := w.llm.Canary(a.endpoint, a.model)
		if err != nil {
			return all, err
		}
		if ask && at.Canary && !w.replays && (!known || k.Failure != "") {
			if k, err = w.llm.Probe(ctx, a.endpoint, a.model); err != nil {
				return all, err
			}
			known = true
		}
		if known {
			all = append(all, k)
		}
	}
	return all, nil
}

// endpoints asks every configured endpoint for its models, and looks for canaries of those in use.
func (d *doctor) endpoints(ctx context.Context) error {
	if d.models == nil {
		return nil
	}
	inUse := d.config.Recipe.modelsInUse()
	for _, name := range d.models.EndpointNames() {
		at := d.config.Runtime.Endpoints[name]
		if d.models.Inside(name) {
			d.ok("endpoint "+name, "the builtin model, which compares words: good to try the pipeline with")
			continue
		}
		reached := false
		if d.o.Offline {
			d.skip("endpoint "+name, at.BaseURL+" was not asked")
		} else {
			var models []string
			for _, a := range inUse {
				if a.endpoint == name {
					models = append(models, a.model)
				}
			}
			reached = d.reach(ctx, name, at, models)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if p, ok := d.models.ProfileOf(name); ok && p.Mind != "" {
			d.ok("profile "+name, p.Name+"; mind: "+p.Mind)
		}
		for _, a := range inUse {
			if a.endpoint != name {
				continue
			}
			if err := d.canary(ctx, a, reached); err != nil {
				return err
			}
		}
	}
	return nil
}

// reach reports whether an endpoint is worth a call.
func (d *doctor) reach(ctx context.Context, name string, at Endpoint, models []string) bool {
	name = "endpoint " + name
	before := d.now()
	l, err := d.models.Models(ctx, strings.TrimPrefix(name, "endpoint "))
	if !l.Date.IsZero() {
		d.read(at.BaseURL, l.Date, before)
	}
	var e *llm.Error
	switch {
	case errors.As(err, &e) && e.Reason == llm.ReasonNetwork:
		d.fail(name, at.BaseURL+" cannot be reached: "+e.Detail, endpointHelp(at, e.Reason))
		return false
	case errors.As(err, &e) && (e.Reason == llm.ReasonCredentials || e.Reason == llm.ReasonQuota):
		d.fail(name, e.Error(), endpointHelp(at, e.Reason))
		return false
	case errors.As(err, &e) && e.Status >= 300 && e.Status < 400:
		d.fail(name, e.Error(), "set base_url to the address that it moved to: redirects are not followed, since the key would go along")
		return false
	case errors.As(err, &e) && (e.Reason == llm.ReasonRateLimit || e.Reason == llm.ReasonServer):
		d.warn(name, e.Error(), endpointHelp(at, e.Reason))
		return true
	case errors.As(err, &e) && e.Status != 0:
		d.warn(name, fmt.Sprintf("%s is there and gives no list of its models (status %d)", at.BaseURL, e.Status), "if calls fail too, see whether base_url ends as the service wants it, often in /v1")
		return true
	case err != nil:
		d.warn(name, at.BaseURL+": "+err.Error(), "see whether base_url ends as the service wants it, often in /v1")
		return true
	}
	for _, m := range models {
		if len(l.Models) > 0 && !slices.Contains(l.Models, m) {
			d.warn(name, fmt.Sprintf("%s has %d models, and %s is none of them (%s)", at.BaseURL, len(l.Models), m, few(l.Models)), "correct recipe.models, unless the service knows names that it does not list")
			return true
		}
	}
	d.ok(name, fmt.Sprintf("%s answers, %d models", at.BaseURL, len(l.Models)))
	return true
}

// endpointHelp is what to do about an endpoint that failed for a reason.
func endpointHelp(at Endpoint, reason string) string {
	switch reason {
	case llm.ReasonNetwork, llm.ReasonTimeout:
		return "start the server, or correct base_url; a model that is slow to load needs a longer timeout"
	case llm.ReasonCredentials:
		return "put a key that is good for " + at.BaseURL + " into the variable that key_env names"
	case llm.ReasonQuota:
		return "the account behind this key has no money left: top it up, or name another endpoint in recipe.models; a build would end with exit 4"
	case llm.ReasonRateLimit:
		return "wait and try again; if it stays, lower rpm, tpm or concurrency of this endpoint"
	case llm.ReasonServer:
		return "the service itself fails: try again later, or look at the log of the server if it is yours"
	case llm.ReasonBadReply:
		return "what answers is no such service: see whether base_url ends as it wants it, often in /v1, and whether a proxy or log-in page stands before it"
	}
	return "see the message: name, key and address of the model must fit the service"
}

// few shows the beginning of a list.
func few(list []string) string {
	if len(list) > 5 {
		return strings.Join(list[:5], ", ") + ", ..."
	}
	return strings.Join(list, ", ")
}

// canary shows what a model was found to do, and finds it out where nobody has.
func (d *doctor) canary(ctx context.Context, a asked, reached bool) error {
	name := "canary " + a.endpoint + " " + a.model
	k, known, err := d.models.Canary(a.endpoint, a.model)
	if err != nil {
		return err
	}
	switch {
	case !reached && (!known || k.Failure != ""):
		d.skip(name, "never probed with success")
		return nil
	case reached && (!known || d.o.Model || k.Failure != ""):
		if k, err = d.models.Probe(ctx, a.endpoint, a.model); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			help := "the probe is two calls; see the message"
			if e := (*llm.Error)(nil); errors.As(err, &e) {
				help = endpointHelp(d.config.Runtime.Endpoints[a.endpoint], e.Reason)
			}
			d.fail(name, err.Error(), help)
			return nil
		}
	}
	d.report.Canaries = append(d.report.Canaries, k)
	detail := k.Text() + " (" + k.Probed.Format(time.DateOnly) + ")"
	switch change := d.models.Change(k); {
	case k.Constrains == "":
		help := endpointHelp(d.config.Runtime.Endpoints[a.endpoint], k.Reason)
		if k.Reason == "" { // it answered, and said nothing
			help = "thoughts that fill the bound are to be turned down at the server; a model that refuses such a question cannot label"
		}
		d.fail(name, detail, help)
	case change != "":
		d.fail(name, detail+"; as it is set up its calls are rejected", "add to runtime.endpoints."+a.endpoint+": "+change)
	case !k.Temperature && d.setsTemperature(a):
		d.warn(name, detail, "drop the temperature of "+a.model+" from recipe.models, or choose a profile that does not send it")
	case k.Constrains == llm.FindingNo:
		d.warn(name, detail, "answers that do not fit are repaired or fail; expect more calls, or use a server that constrains")
	case k.Steady == llm.FindingNo:
		d.warn(name, detail, "a second label of the same pair may differ; what is stored is used again")
	default:
		d.ok(name, detail)
	}
	return nil
}

// setsTemperature reports whether a role of the recipe sends a temperature to this model.
func (d *doctor) setsTemperature(a asked) bool {
	p, ok := d.models.ProfileOf(a.endpoint)
	if !ok || p.Sampling != nil && !p.Sampling(a.model) {
		return false
	}
	for _, role := range d.config.Recipe.Models {
		if (asked{role.Endpoint, role.Model}) == a && role.Temperature != nil {
			return true
		}
	}
	return false
}

// robots asks the configured sites whether we may read their listings.
func (d *doctor) robots(ctx context.Context) error {
	if !slices.Contains(d.config.Recipe.Discover, DiscoverListing) {
		return nil
	}
	for _, s := range d.config.Recipe.Sites {
		name := "robots " + s.Name
		site, err := scrapers.SiteNamed(s.Name)
		if err != nil {
			return err
		}
		switch {
		case d.o.Offline:
			d.skip(name, "not asked")
			continue
		case d.fetch == nil || d.config.Runtime.Contact == "":
			d.skip(name, "nothing is fetched without a contact and the store")
			continue
		}
		for _, start := range site.Start(strings.TrimSuffix(s.Base, "/"), d.config.Recipe.Speakers) {
			before := d.now()
			err := d.fetch.Allowed(ctx, start)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			d.siteClock(start, before)
			var e *fetch.Error
			switch {
			case err == nil:
				d.ok(name, start+" may be read")
			case errors.As(err, &e) && e.Reason == fetch.ReasonRobots:
				d.fail(name, fmt.Sprintf("%s may not be read: %s", start, e.Rule), "ask the site, or import an archive: assay import warc")
			case errors.As(err, &e) && e.Reason == fetch.ReasonBlockedAddress:
				d.fail(name, err.Error(), "correct recipe.sites; if the server is yours and meant, add its host:port to runtime.allow_private")
			default:
				d.fail(name, err.Error(), "see whether the site can be reached from here")
			}
			break // the first listing stands for the site
		}
	}
	return nil
}

// siteClock reads the clock of a site whose robots.txt has just been fetched.
func (d *doctor) siteClock(address string, before time.Time) {
	scheme, rest, _ := strings.Cut(address, "://")
	host, _, _ := strings.Cut(rest, "/")
	exchanges, err := d.fetch.Exchanges(scheme + "://" + host + "/robots.txt")
	if err != nil || len(exchanges) == 0 {
		return
	}
	last := exchanges[len(exchanges)-1]
	if date, err := time.Parse(time.RFC1123, last.Header.Get("Date")); err == nil && !last.At.Before(before) {
		d.read(host, date, before)
	}
}

// read compares a clock with ours, halfway between question and answer.
func (d *doctor) read(who string, theirs, before time.Time) {
	after := d.now()
	d.clocks = append(d.clocks, clockReading{who, theirs.Sub(before.Add(after.Sub(before) / 2))})
}

// clock judges our clock by the middle one of those that were read.
func (d *doctor) clock() {
	if len(d.clocks) == 0 {
		d.skip("clock", "nothing that was asked told its time")
		return
	}
	slices.SortFunc(d.clocks, func(a, b clockReading) int { return int(a.skew - b.skew) })
	c := d.clocks[len(d.clocks)/2]
	skew := c.skew.Round(time.Second)
	switch size := skew.Abs(); {
	case size > 10*time.Minute:
		d.fail("clock", fmt.Sprintf("%s is %s ahead of this machine", c.who, skew), "set the clock: waits that servers ask for are dates")
	case size > time.Minute:
		d.warn("clock", fmt.Sprintf("%s is %s ahead of this machine", c.who, skew), "set the clock: waits that servers ask for are dates")
	default:
		d.ok("clock", fmt.Sprintf("within %s of %s", max(size, time.Second), c.who))
	}
}

// injection tries the shipped attacks on the model that annotates, under the prompt that labels are
// made with and under a control without fence.
func (d *doctor) injection(ctx context.Context) error {
	if d.models == nil {
		return nil
	}
	if d.w == nil {
		d.skip("injection", "the store is not ours, and the calls are to be kept")
		return nil
	}
	s := d.w.roleSettings("annotate")
	trials, err := annotate.Trials(s)
	if err != nil {
		return err
	}
	source := func(yield func(annotate.Trial, error) bool) {
		for _, t := range trials {
			if !yield(t, nil) {
				return
			}
		}
	}
	var results []annotate.TrialResult
	for r, err := range pipeline.Each(ctx, d.w.workers(), source, func(ctx context.Context, t annotate.Trial) (annotate.TrialResult, error) {
		return t.Run(ctx, d.models)
	}) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			d.fail("injection", err.Error(), "the model could not be asked; see its endpoint above")
			return nil
		}
		results = append(results, r)
	}
	i := annotate.Tally(s, results)
	d.report.Injection = &i
	d.judgeInjection(i)
	return nil
}

func (d *doctor) judgeInjection(i annotate.Injection) {
	detail := fmt.Sprintf("%s: %s", i.Model, i.Fenced.Text())
	switch {
	case i.Fenced.Constant():
		d.warn("injection", detail+"; every clean document got the same answer", "this model does not read: its labels mean nothing")
	case i.Fenced.Obeyed > i.Fenced.Held:
		d.warn("injection", detail+" ("+few(i.Fenced.Which)+")", "documents that give orders mislead this model now and then: look at a sample of its labels")
	default:
		d.ok("injection", detail)
	}
	d.ok("injection, control without fence", fmt.Sprintf("%s: %s", i.Model, i.Control.Text()))
}

// Text is a checkup for people: a line for each check, and one of help below what is not ok.
func (c Checkup) Text() string {
	var b strings.Builder
	for _, k := range c.Checks {
		fmt.Fprintf(&b, "%-4s  %s: %s\n", k.State, k.Name, strings.Join(strings.Fields(k.Detail), " "))
		if k.Help != "" {
			fmt.Fprintf(&b, "      %s\n", k.Help)
		}
	}
	return b.String()
}
