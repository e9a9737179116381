export interface StoredCookie {
  host: string
  name: string
  value: string
  path: string
  attributes: readonly string[]
}

/** As much of RFC 6265 as a sign-in needs: host, path and deletion. Ports do not separate cookies (section 8.5). */
export class CookieJar {
  #cookies: StoredCookie[] = []

  store(url: URL, setCookies: readonly string[]): void {
    for (const header of setCookies) {
      const [pair = '', ...attributes] = header.split(';').map((part) => part.trim())
      const name = pair.slice(0, pair.indexOf('='))
      const cookie = {
        host: url.hostname,
        name,
        value: pair.slice(name.length + 1),
        path: attributeOf(attributes, 'path') ?? '/',
        attributes,
      }
      this.#cookies = this.#cookies.filter((known) => known.host !== cookie.host || known.name !== name || known.path !== cookie.path)
      if (!isExpired(attributes)) this.#cookies.push(cookie)
    }
  }

  headerFor(url: URL): string {
    return this.#cookies
      .filter(({ host, path }) => host === url.hostname && isWithin(url.pathname, path))
      .map(({ name, value }) => `${name}=${value}`)
      .join('; ')
  }

  of(hostname: string): StoredCookie[] {
    return this.#cookies.filter(({ host }) => host === hostname)
  }
}

function isWithin(pathname: string, path: string): boolean {
  return pathname === path || pathname.startsWith(path.endsWith('/') ? path : `${path}/`)
}

function isExpired(attributes: readonly string[]): boolean {
  const maxAge = attributeOf(attributes, 'max-age')
  if (maxAge !== undefined) return Number(maxAge) <= 0
  const expires = attributeOf(attributes, 'expires')
  return expires !== undefined && Date.parse(expires) <= Date.now()
}

function attributeOf(attributes: readonly string[], name: string): string | undefined {
  return attributes.find((attribute) => attribute.toLowerCase().startsWith(`${name}=`))?.slice(name.length + 1)
}
