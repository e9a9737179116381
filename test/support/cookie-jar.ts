import { Cookie, MemoryCookieStore, CookieJar as ToughJar } from 'tough-cookie'

/**
 * What makes a browser send the request. `page`: a page of the same site, or the person. Of another site: a `link` or redirect that opens in
 * the tab itself, a `form` that posts there, or a `script`, which stands for pictures and frames too.
 */
export type Sender = 'page' | 'link' | 'form' | 'script'

export interface Asked {
  host: string
  /** With or without the query. */
  path: string
  /** Default `page`. */
  by?: Sender
}

/** The cookies of one browser, which speaks https with every host. */
export interface CookieJar {
  /** What another host of the same site sets. */
  plant(cookie: { name: string; value: string; domain: string; path: string }): void
  /** What an answer sets, in its order, without what a browser refuses. */
  take(headers: Record<string, unknown>, asked: Asked): void
  /** The Cookie header of a request; undefined: no cookie matches. The longest path comes first (RFC 6265 section 5.4), and a nameless one is its value alone. */
  header(asked: Asked): string | undefined
  names(): string[]
  /** Everything that has not ended. */
  kept(): Cookie[]
}

const contexts = { page: 'strict', link: 'lax', form: 'none', script: 'none' } as const

/** @param now the clock of the browser, by which cookies end */
export function cookieJar({ now = () => new Date() }: { now?: () => Date } = {}): CookieJar {
  const store = new MemoryCookieStore()
  const jar = new ToughJar(store, { prefixSecurity: 'strict' })
  const isAlive = (cookie: Cookie) => !(cookie.expires instanceof Date) || cookie.expires > now()

  function keep(cookie: Cookie, asked: Asked): void {
    if (isRefused(cookie)) return
    // By the library's own count a Max-Age begins anew whenever the cookie is sent.
    if (typeof cookie.maxAge === 'number') cookie.setExpires(new Date(now().getTime() + cookie.maxAge * 1_000))
    cookie.maxAge = null
    const sameSiteContext = asked.by === 'script' ? 'none' : 'lax' // an answer that fills the tab may set what it likes
    const kept = jar.setCookieSync(cookie, urlOf(asked), { now: now(), ignoreError: true, sameSiteContext })
    if (kept && !isAlive(kept)) void store.removeCookie(kept.domain ?? '', kept.path ?? '', kept.key)
  }

  const kept = () => (jar.serializeSync()?.cookies ?? []).flatMap((cookie) => Cookie.fromJSON(cookie) ?? []).filter(isAlive)

  return {
    plant: ({ name, value, domain, path }) =>
      keep(new Cookie({ key: name, value, domain, path, hostOnly: false }), { host: `sibling.${domain}`, path: '/' }),
    take(headers, asked) {
      for (const line of (headers['set-cookie'] ?? []) as string[]) {
        const cookie = parsed(line)
        if (cookie) keep(cookie, asked)
      }
    },
    header(asked) {
      const sent = jar.getCookiesSync(urlOf(asked), { sameSiteContext: contexts[asked.by ?? 'page'], expire: false, sort: true })
      const alive = sent.filter(isAlive).map((cookie) => cookie.cookieString())
      return alive.length === 0 ? undefined : alive.join('; ')
    },
    names: () => kept().map(({ key }) => key),
    kept,
  }
}

/** The Cookie header of a browser's request to this path, after an answer that set its first cookies. */
export function cookiesAfter(answer: { headers: Record<string, unknown> }, path: string): string {
  const jar = cookieJar({ now: () => new Date(0) }) // a test's clock is not at hand, and nothing has ended yet
  jar.take(answer.headers, { host: 'app.example.test', path: '/' })
  return jar.header({ host: 'app.example.test', path }) ?? ''
}

/** The library takes `=a=b` for the cookie `a`, or for none; to a browser it is a nameless one of the value `a=b`. */
function parsed(line: string): Cookie | undefined {
  const isNameless = line.startsWith('=')
  const cookie = Cookie.parse(isNameless ? `nameless${line}` : line)
  if (cookie && isNameless) cookie.key = ''
  return cookie
}

/** What the library would keep, against RFC 6265bis section 5.7. */
function isRefused({ key, value, sameSite, secure }: Cookie): boolean {
  if (sameSite === 'none' && !secure) return true
  return key === '' && (value === '' || /^__(Host|Secure)-/i.test(value))
}

/** A browser compares paths as they stand in the address; the library decodes them first. */
function urlOf({ host, path }: Asked): URL {
  const url = new URL(`https://${host}${path}`)
  url.pathname = url.pathname.replaceAll('%', '%25')
  return url
}
