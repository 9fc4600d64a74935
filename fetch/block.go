package fetch

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/net/html"
)

const (
	// longText is the amount of visible text, in bytes, above which a page is content unless its title is
	// that of a wall. It keeps the look at an ordinary page to the first few kilobytes of its text.
	longText = 2500
	// glanceBytes bounds how much markup of a page with little text is looked at.
	glanceBytes = 512 << 10
)

// classify says what a response is good for and, where that is not "ok", why. The body is decoded
// content. Many walls come with status 200: challenges, consent and log-in pages, script shells,
// pages that say "not found". A page behind a paywall is ok: it is the article, though not whole.
func classify(status int, header http.Header, body []byte) (Class, string) {
	class, reason := statusClass(status, header)
	switch {
	case class == ClassGone, class == ClassThrottled, class == ClassOK && (status < 200 || status >= 300),
		class == ClassBlocked && !strings.HasPrefix(reason, "status_"):
		return class, reason // the body has nothing to add
	}
	wall := wallOf(header, body)
	switch {
	case wall == "", class != ClassOK && softWall(wall):
		return class, reason
	case wall == "rate-limit":
		return ClassThrottled, wall
	case wall == "soft_404":
		return ClassGone, wall
	default:
		return ClassBlocked, wall
	}
}

// statusClass is classify without the body.
func statusClass(status int, header http.Header) (Class, string) {
	reason := fmt.Sprintf("status_%d", status)
	switch {
	case header.Get("Cf-Mitigated") == "challenge":
		return ClassBlocked, "cloudflare-js"
	case header.Get("X-Amzn-Waf-Action") != "":
		return ClassBlocked, "captcha"
	case status >= 200 && status < 300, status == http.StatusNotModified, status >= 300 && status < 400 && header.Get("Location") != "":
		return ClassOK, ""
	case status == http.StatusNotFound, status == http.StatusGone, status == http.StatusUnavailableForLegalReasons:
		return ClassGone, reason
	case status == http.StatusTooManyRequests:
		return ClassThrottled, "rate-limit"
	case status == http.StatusServiceUnavailable && header.Get("Retry-After") != "":
		return ClassThrottled, reason
	case status == http.StatusUnauthorized, status == http.StatusPaymentRequired, status == http.StatusForbidden, status == http.StatusProxyAuthRequired:
		return ClassBlocked, reason
	}
	return ClassFailed, reason
}

// softWall names walls that only a page with a good status can be: an error page is often empty,
// and often offers to log in.
func softWall(wall string) bool {
	switch wall {
	case "empty", "consent", "login", "js-shell", "soft_404":
		return true
	}
	return false
}

// wallOf returns the sort of wall that a body is, "" for content.
func wallOf(header http.Header, body []byte) string {
	kind := mediaType(header.Get("Content-Type"))
	if len(bytes.TrimSpace(body)) == 0 {
		if kind == "" || strings.Contains(kind, "html") {
			return "empty"
		}
		return ""
	}
	if !readsAsPage(kind, body) {
		return ""
	}
	if name, _ := byteOrderMark(body); strings.HasPrefix(name, "utf-16") {
		body = []byte(decodeText(name, body))
	}
	title, size := skim(body, longText)
	if size >= longText && !wallTitle.MatchString(title) {
		if saysNotFound(title, true) {
			return "soft_404"
		}
		return ""
	}
	g := look(body[:min(len(body), glanceBytes)])
	for _, w := range walls {
		if w.match(g) {
			return w.name
		}
	}
	return ""
}

// readsAsPage reports whether a body is one that people read in a browser.
func readsAsPage(kind string, body []byte) bool {
	switch {
	case strings.Contains(kind, "html"):
		return true
	case kind == "text/plain":
		return len(body) < 1000 // services send their refusals as a line of text
	case kind == "", kind == "application/octet-stream", kind == "unknown/unknown":
		return strings.HasPrefix(http.DetectContentType(body), "text/html")
	}
	return false
}

// wallTitle matches the titles of walls that may hold much text, or numbers that only look like text.
var wallTitle = regexp.MustCompile(`^just a moment|^attention required|access denied|cloudflare|too many requests|robot|wayback machine|request access$|verifying`)

// A wall is a sort of page that is served instead of the one that was asked for.
type wall struct {
	name  string
	match func(g glance) bool
}

// walls are tried in order: vendors first, because their pages also fit the general sorts below them.
var walls = []wall{
	{"forbidden", func(g glance) bool { return g.words < 60 && g.titled("forbidden", "403 forbidden", "403 - forbidden") }},
	{"sucuri-js", func(g glance) bool { return g.raw("sucuri_cloudproxy_js") }},
	{"incapsula", func(g glance) bool {
		return (g.words < 12 || g.says("incapsula incident")) && g.raw("_incapsula_resource")
	}},
	{"cloudflare-denied", func(g glance) bool {
		return strings.Contains(g.title, "cloudflare to restrict access") || g.raw("cf-error-details") && g.says("you have been blocked", "access denied")
	}},
	{"cloudflare-captcha", func(g glance) bool { return strings.HasPrefix(g.title, "attention required! | cloudflare") }},
	{"cloudflare-js", func(g glance) bool {
		return (g.title == "just a moment..." || g.says("checking your browser before accessing")) && g.raw("jschl", "_cf_chl_opt", "challenge-platform", "cf-browser-verification", "ddos protection by")
	}},
	{"cloudflare-turnstile", func(g glance) bool { return g.raw("turnstile") && (g.title == "just a moment..." || g.asksHuman()) }},
	{"cloudflare-js", func(g glance) bool { return g.title == "just a moment..." && g.words < 60 }},
	{"enablejs", func(g glance) bool { return g.raw("/httpservice/retry/enablejs") }},
	{"captcha", func(g glance) bool {
		return g.raw("captcha-delivery.com", "px-captcha", "awswafcookiedomainlist", `id="captcha-form"`, "passmod_verify") && g.words < 250 ||
			strings.Contains(g.title, "百度安全验证") || strings.HasSuffix(g.title, "verifying your request") ||
			g.asksHuman() && g.raw("captcha", "challenge")
	}},
	{"rate-limit", func(g glance) bool {
		return g.titled("too many requests", "429 too many requests", "rate limit exceeded") || g.says("whoa there, pardner") ||
			g.words < 40 && g.says("please limit requests to", "too many requests", "rate limit exceeded", "request was throttled")
	}},
	{"excluded-site", func(g glance) bool { return g.says("this url has been excluded from the wayback machine") }},
	{"denied", func(g glance) bool {
		return g.words < 150 && (g.titled("access denied", "access to this page has been denied", "error: the request could not be satisfied", "request rejected", "pardon our interruption") ||
			g.says("you don't have permission to access", "access to this page has been denied") ||
			strings.Contains(g.title, "dns filter")) ||
			strings.HasSuffix(g.title, ":: request access")
	}},
	{"soft_404", func(g glance) bool {
		return saysNotFound(g.title, false) || g.words < 150 && saysNotFound(g.heading, false)
	}},
	{"consent", func(g glance) bool { return g.content < 40 && g.notice >= 8 && g.notice > g.content }},
	{"login", func(g glance) bool { return g.content < 40 && g.words < 200 && g.login }},
	{"enablejs", func(g glance) bool {
		return g.words < 60 && g.scripts > 0 && g.says("enable javascript", "javascript is required", "javascript is disabled", "javascript to continue")
	}},
	{"js-shell", func(g glance) bool { return g.words < 12 && g.scripts > 0 && !g.data && !g.frames }},
}

// asksHuman reports whether a short page asks the reader to prove being one.
func (g glance) asksHuman() bool {
	return g.words < 250 && (g.says("not a robot", "unusual traffic", "you are human", "you're human", "are a human", "human verification", "security check", "automated requests") || strings.Contains(g.title, "robot"))
}

// A glance is what a page shows, read off its markup without building a tree. Text is in lower case
// with white space folded and typographic apostrophes made straight.
type glance struct {
	markup  []byte // lower case
	title   string
	heading string // first h1
	text    string
	words   int  // visible
	content int  // of these, not in links, buttons, forms or notices
	notice  int  // of these, in cookie and consent notices
	login   bool // asks for a password, or is headed so and has a form
	scripts int
	data    bool // carries its article or its ClaimReview as data for machines
	frames  bool
}

func (g glance) raw(marks ...string) bool {
	for _, m := range marks {
		if bytes.Contains(g.markup, []byte(m)) {
			return true
		}
	}
	return false
}

func (g glance) says(phrases ...string) bool {
	for _, p := range phrases {
		if strings.Contains(g.text, p) {
			return true
		}
	}
	return false
}

func (g glance) titled(titles ...string) bool {
	for _, t := range titles {
		if g.title == t {
			return true
		}
	}
	return false
}

var (
	noticeName   = regexp.MustCompile(`(?i)cookies?[-_ ]?(?:consent|banner|bar|notice|message|popup|modal|overlay|wall|law|policy|info|settings|accept)|consent|gdpr|ccpa|onetrust|didomi|sp_message|privacy-?(?:banner|notice|wall)`)
	noticeTopic  = regexp.MustCompile(`(?i)\bcookies?\b|\bconsent\b|\bprivacy\b|datenschutz|privatsphäre|vie privée|privacidad|privacidade`)
	noticeWord   = regexp.MustCompile(`(?i)site|web|browser|device|gerät|technolog|consent|polic|políti|richtlinie|settings|preferences|analy|advertis|werbung|publici|pubblicit|partner|traffic|personali|track|third[- ]party|servic|experien|expérien|navig|visit`)
	noticeAnswer = regexp.MustCompile(`(?i)^(?:i )?(?:accept|agree|allow|reject|decline|deny|got it|ok|okay|manage|settings|preferences|akzeptieren|zustimmen|ablehnen|einstellungen|accepter|refuser|aceptar|rechazar|accetta|rifiuta|aceitar|recusar|akkoord)\b`)
	loginHeading = regexp.MustCompile(`^(?:please )?(?:log ?in|sign ?in|anmelden|connexion|se connecter|iniciar sesión|accedi|entrar)\b`)
	hiddenStyle  = regexp.MustCompile(`(?i)(?:display\s*:\s*none|visibility\s*:\s*hidden)`)
)

// element is an open element of the walk in look, and place is what its text counts as.
type (
	element struct {
		name string
		place
	}
	place struct{ hidden, form, link, notice bool }
)

// look reads the markup of a page that shows little text.
func look(body []byte) glance {
	g := glance{markup: bytes.ToLower(body)}
	var text, part strings.Builder
	var open []element
	top := func() element {
		if len(open) == 0 {
			return element{}
		}
		return open[len(open)-1]
	}
	flush := func(e element) {
		s := foldPage(part.String())
		part.Reset()
		if s == "" {
			return
		}
		text.WriteString(s + " ")
		n := countWords(s)
		g.words += n
		switch {
		case e.notice, n < 120 && noticeTopic.MatchString(s) && noticeWord.MatchString(s), e.link && noticeAnswer.MatchString(s):
			g.notice += n
		case !e.form && !e.link:
			g.content += n
		}
	}
	form, password, heading := false, false, false
	z := html.NewTokenizer(bytes.NewReader(body))
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		switch kind {
		case html.TextToken:
			raw := z.Text()
			switch e := top(); {
			case e.name == "title":
				if g.title == "" {
					g.title = foldPage(string(raw))
				}
			case !e.hidden:
				part.Write(raw)
				part.WriteByte(' ')
				if heading && g.heading == "" {
					g.heading = foldPage(string(raw))
				}
			case e.name == "script":
				g.data = g.data || bytes.Contains(raw, []byte(`"articleBody"`)) || bytes.Contains(raw, []byte(`"ClaimReview"`))
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			e := child(top(), t)
			heading = heading || t.Data == "h1"
			switch t.Data {
			case "script":
				if kind := attr(t, "type"); kind == "" || kind == "module" || strings.Contains(kind, "javascript") {
					g.scripts++
				}
			case "frameset", "frame":
				g.frames = true
			case "form":
				form = true
			case "input":
				password = password || strings.EqualFold(attr(t, "type"), "password")
			}
			if breaks(t.Data) || e.place != top().place {
				flush(top())
			}
			if kind == html.StartTagToken && !void(t.Data) {
				open = append(open, e)
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			for i := len(open) - 1; i >= 0; i-- {
				if open[i].name == string(name) {
					if breaks(open[i].name) || open[i].place != (place{}) {
						flush(top())
					}
					open = open[:i]
					break
				}
			}
			heading = heading && string(name) != "h1"
		}
	}
	flush(top())
	g.text = text.String()
	g.login = password || form && (loginHeading.MatchString(g.heading) || loginHeading.MatchString(g.title))
	return g
}

// child returns the element that a start tag opens inside another.
func child(parent element, t html.Token) element {
	e := parent
	e.name = t.Data
	switch t.Data {
	case "script", "style", "noscript", "template", "svg", "iframe", "textarea", "select", "object", "title":
		e.hidden = true
	case "form":
		e.form = true
	case "a", "button", "nav":
		e.link = true
	}
	if t.Data == "html" || t.Data == "body" {
		return e // some pages hide all of themselves until a script ran
	}
	for _, a := range t.Attr {
		switch a.Key {
		case "hidden":
			e.hidden = true
		case "style":
			e.hidden = e.hidden || hiddenStyle.MatchString(a.Val)
		case "id", "class", "aria-label":
			e.notice = e.notice || noticeName.MatchString(a.Val)
		}
	}
	return e
}

// breaks reports whether an element starts a new part of a page.
func breaks(name string) bool {
	switch name {
	case "a", "abbr", "b", "bdi", "bdo", "cite", "code", "em", "font", "i", "mark", "q", "s", "small", "span", "strong", "sub", "sup", "u", "wbr", "br", "img", "time":
		return false
	}
	return true
}

func void(name string) bool {
	switch name {
	case "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr":
		return true
	}
	return false
}

func attr(t html.Token, key string) string {
	for _, a := range t.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// foldPage folds text as it is compared here.
func foldPage(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "")), " ")
	return strings.ToLower(strings.ReplaceAll(s, "’", "'"))
}

// countWords counts words; scripts without blanks count two characters as one word.
func countWords(s string) int {
	n, dense := 0, 0
	in := false
	for _, r := range s {
		switch {
		case r > unicode.MaxLatin1 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai):
			dense++
			in = false
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			if !in {
				n++
			}
			in = true
		case r == ' ':
			in = false
		}
	}
	return n + (dense+1)/2
}

// skim returns the folded title of a page and the size of its visible text in bytes, counted up to max.
func skim(body []byte, max int) (title string, size int) {
	for len(body) > 0 && size < max {
		i := bytes.IndexByte(body, '<')
		if i < 0 {
			i = len(body)
		}
		size += len(bytes.TrimSpace(body[:i]))
		if body = body[i:]; len(body) == 0 {
			break
		}
		switch {
		case bytes.HasPrefix(body, []byte("<!--")):
			body = after(body, "-->")
			continue
		case startsTag(body, "script"):
			body = after(body, "</script")
		case startsTag(body, "style"):
			body = after(body, "</style")
		case startsTag(body, "noscript"):
			body = after(body, "</noscript")
		case startsTag(body, "title") && title == "":
			_, body, _ = bytes.Cut(body, []byte(">"))
			text, _, _ := bytes.Cut(body, []byte("<"))
			title = foldPage(html.UnescapeString(string(text)))
			body = body[len(text):]
			continue
		}
		_, body, _ = bytes.Cut(body, []byte(">"))
	}
	return title, size
}

var (
	titleParts   = regexp.MustCompile(`\s(?:[|\-–—»·•]|::)\s`)
	notFoundWord = regexp.MustCompile(`\b(?:404|error|http|oops|sorry|status|code|uh|oh)\b|[^\p{L}\p{N}' ]`)
	notFoundText = map[string]bool{
		"page not found": true, "not found": true, "file not found": true, "page cannot be found": true, "page doesn't exist": true, "page does not exist": true,
		"page unavailable": true, "page isn't available": true, "content not available": true, "file or directory not found": true, "article not found": true,
		"the page you requested was not found": true, "seite nicht gefunden": true, "page introuvable": true, "page non trouvée": true,
		"página no encontrada": true, "pagina non trovata": true, "página não encontrada": true, "pagina niet gevonden": true,
	}
)

// saysNotFound reports whether one part of a title or heading says that there is no page. Of a long
// page this must be said in full: there are articles about the status code.
func saysNotFound(title string, long bool) bool {
	for _, p := range titleParts.Split(title, -1) {
		words := strings.Join(strings.Fields(notFoundWord.ReplaceAllString(p, " ")), " ")
		for _, start := range []string{"this ", "the ", "that "} {
			words = strings.TrimPrefix(words, start)
		}
		switch {
		case long && strings.Contains(words, " ") && notFoundText[words] && words != "not found",
			!long && notFoundText[words],
			!long && words == "" && strings.Contains(p, "404"):
			return true
		}
	}
	return false
}
