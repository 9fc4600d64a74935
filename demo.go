package assay

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

//go:embed demo/web.yaml demo/page.html
var demoFiles embed.FS

// Hosts of the demo's web. Their names end in .example, which nobody can own; Runtime.Resolve dials
// them on loopback, so that addresses and ids do not depend on the port.
const (
	DemoFactCheckHost = "factcheck.example"
	DemoNewsHost      = "news.example"
)

// DemoWeb is the small web of invented fact-checks, news pages and posts that the demo reads.
type DemoWeb struct {
	Claims    []DemoClaim `yaml:"claims"`
	Oddities  []DemoClaim `yaml:"oddities"`
	Posts     []demoPost  `yaml:"posts"`
	Pages     []demoPage  `yaml:"pages"`
	templates *template.Template
}

// DemoClaim is one fact-check page. Negation is its claim denied in a person's words.
type DemoClaim struct {
	Path     string   `yaml:"path"`
	Kind     string   `yaml:"kind"` // "" claim, flip, broken, blocked, gone
	Claim    string   `yaml:"claim"`
	Negation string   `yaml:"negation"`
	Speaker  string   `yaml:"speaker"`
	Rating   string   `yaml:"rating"` // the site's machine word
	Stated   string   `yaml:"stated"`
	Medium   string   `yaml:"medium"`
	Title    string   `yaml:"title"`
	Author   string   `yaml:"author"`
	Tags     []string `yaml:"tags"`
	Body     []string `yaml:"body"`
}

type demoPost struct {
	ID         string `yaml:"id"`
	Sub        string `yaml:"sub"`
	Date       string `yaml:"date"`
	Title      string `yaml:"title"`
	Text       string `yaml:"text"`
	Link       string `yaml:"link"`
	AuthorGone bool   `yaml:"author_gone"`
}

type demoPage struct {
	Path       string   `yaml:"path"`
	Title      string   `yaml:"title"`
	Date       string   `yaml:"date"`
	Paragraphs []string `yaml:"paragraphs"`
	Wall       bool     `yaml:"wall"`
}

// LoadDemoWeb reads the embedded web.
func LoadDemoWeb() (*DemoWeb, error) {
	data, err := demoFiles.ReadFile("demo/web.yaml")
	if err != nil {
		return nil, fmt.Errorf("read the demo's web: %w", err)
	}
	var w DemoWeb
	if err := yaml.Unmarshal(data, &w); err != nil {
		return nil, fmt.Errorf("read the demo's web: %w", err)
	}
	w.templates, err = template.ParseFS(demoFiles, "demo/page.html")
	if err != nil {
		return nil, fmt.Errorf("read the demo's pages: %w", err)
	}
	return &w, nil
}

// Dump writes the posts as NDJSON in the form of Reddit dumps.
func (w *DemoWeb) Dump() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	for _, p := range w.Posts {
		created, err := time.Parse(time.DateOnly, p.Date)
		if err != nil {
			return nil, fmt.Errorf("demo post %s: %w", p.ID, err)
		}
		author := "invented_" + p.ID
		if p.AuthorGone {
			author = "[deleted]"
		}
		permalink := "/r/" + p.Sub + "/comments/" + p.ID + "/" + strings.ToLower(strings.ReplaceAll(p.Title, " ", "_")) + "/"
		link, self := "https://www.reddit.com"+permalink, true
		if p.Link != "" {
			link, self = p.Link, false
		}
		if err := e.Encode(map[string]any{
			"id": p.ID, "name": "t3_" + p.ID, "subreddit": p.Sub, "title": p.Title, "selftext": p.Text, "author": author,
			"created_utc": created.Unix(), "retrieved_on": created.Add(48 * time.Hour).Unix(),
			"permalink": permalink, "url": link, "is_self": self, "num_comments": 0, "score": 1,
		}); err != nil {
			return nil, fmt.Errorf("demo post %s: %w", p.ID, err)
		}
	}
	return b.Bytes(), nil
}

// statement is what the page templates read.
type statement struct {
	DemoClaim
	Size, Class, Slug, Reviewed, Origin string
}

func (c DemoClaim) statement(size string) statement {
	parts := strings.Split(c.Path, "/") // year/month/day/speaker/slug
	reviewed, err := time.Parse("2006/Jan/02", parts[0]+"/"+strings.ToUpper(parts[1][:1])+parts[1][1:]+"/"+parts[2])
	class := map[string]string{"barely-true": "mostly-false", "pants-fire": "fire"}[c.Rating]
	if class == "" {
		class = c.Rating
	}
	s := statement{DemoClaim: c, Size: size, Class: class, Slug: parts[3], Origin: "http://" + DemoFactCheckHost}
	if err == nil {
		s.Reviewed = reviewed.Format("January 2, 2006")
	}
	if s.Author == "" {
		s.Author = "Tessa Brandt"
	}
	if s.Title == "" {
		s.Title = "Fact-check"
	}
	return s
}

// demoPerPage is small so that the demo's listing has pages to turn.
const demoPerPage = 8

// ServeHTTP answers for both hosts of the demo.
func (w *DemoWeb) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	if r.URL.Path == "/robots.txt" {
		rw.Header().Set("Content-Type", "text/plain")
		fmt.Fprint(rw, "User-agent: *\nDisallow: /admin/\n")
		return
	}
	switch {
	case host == DemoNewsHost:
		w.news(rw, r)
	case r.URL.Path == "/factchecks/list/":
		w.list(rw, r)
	case strings.HasPrefix(r.URL.Path, "/factchecks/"):
		w.claim(rw, r)
	default:
		http.NotFound(rw, r)
	}
}

func (w *DemoWeb) list(rw http.ResponseWriter, r *http.Request) {
	page, err := strconv.Atoi(r.URL.Query().Get("page"))
	if err != nil || page < 1 {
		page = 1
	}
	var all []statement
	for _, c := range slices.Concat(w.Claims, w.Oddities) {
		s := c.statement("medium")
		if speaker := r.URL.Query().Get("speaker"); speaker != "" && speaker != s.Slug {
			continue
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b statement) int { return strings.Compare(b.Path, a.Path) })
	from, to := min((page-1)*demoPerPage, len(all)), min(page*demoPerPage, len(all))
	data := struct {
		Items          []statement
		Next, Previous string
	}{Items: all[from:to]}
	if to < len(all) {
		data.Next = "?page=" + strconv.Itoa(page+1) + "&"
	}
	if page > 1 {
		data.Previous = "?page=" + strconv.Itoa(page-1) + "&"
	}
	w.render(rw, "list", data)
}

func (w *DemoWeb) claim(rw http.ResponseWriter, r *http.Request) {
	path := strings.Trim(strings.TrimPrefix(r.URL.Path, "/factchecks/"), "/")
	for _, c := range slices.Concat(w.Claims, w.Oddities) {
		if c.Path != path {
			continue
		}
		switch c.Kind {
		case "broken":
			w.render(rw, "broken", nil)
		case "blocked":
			rw.Header().Set("Content-Type", "text/html; charset=utf-8")
			rw.WriteHeader(http.StatusForbidden)
			w.render(rw, "wall", nil)
		case "gone":
			http.Error(rw, "This page is gone.", http.StatusGone)
		default:
			w.render(rw, "claim", c.statement("xlarge"))
		}
		return
	}
	http.NotFound(rw, r)
}

func (w *DemoWeb) news(rw http.ResponseWriter, r *http.Request) {
	for _, p := range w.Pages {
		if p.Path != r.URL.Path {
			continue
		}
		if p.Wall {
			w.render(rw, "wall", nil)
			return
		}
		w.render(rw, "news", p)
		return
	}
	http.NotFound(rw, r)
}

func (w *DemoWeb) render(rw http.ResponseWriter, name string, data any) {
	var b bytes.Buffer
	if err := w.templates.ExecuteTemplate(&b, name, data); err != nil {
		http.Error(rw, err.Error(), http.StatusInternalServerError)
		return
	}
	if rw.Header().Get("Content-Type") == "" {
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
	}
	// A reader that hangs up early is its own affair.
	_, _ = rw.Write(b.Bytes())
}

//go:embed demo/assay.yaml
var demoConfig []byte

// DemoConfig is the configuration of the demo's workspace.
func DemoConfig() []byte { return demoConfig }

// IsDemoConfig reports whether a configuration is the demo's, perhaps changed a little.
func IsDemoConfig(text []byte) bool { return bytes.Contains(text, []byte("http://"+DemoFactCheckHost)) }

// DemoOverrides lets the demo's hosts be dialled at the address of its server, and nothing else.
func DemoOverrides(address string) []Override {
	return []Override{
		{Key: "runtime.resolve", Value: fmt.Sprintf("{%s: %q, %s: %q}", DemoFactCheckHost, address, DemoNewsHost, address)},
	}
}
