/** A browser of RFC 6265, as far as cookies of one name at several paths and domains go: supertest's agent keeps too little. */
export interface CookieJar {
  /** What another host of the same site sets. */
  plant(cookie: { name: string; value: string; domain: string; path: string }): void
  /** What an answer to a request for this address sets, in its order. */
  take(headers: Record<string, unknown>, asked: { host: string; path: string }): void
  /** The Cookie header of a request; undefined: no cookie matches. The longest path comes first (section 5.4), and a nameless one is its value alone. */
  header(asked: { host: string; path: string }): string | undefined
  names(): string[]
}

interface Kept {
  name: string
  value: string
  domain: string
  hostOnly: boolean
  path: string
}

export function cookieJar(): CookieJar {
  const kept = new Map<string, Kept>()
  const keyOf = ({ name, domain, hostOnly, path }: Kept) => JSON.stringify([name, domain, hostOnly, path])
  const matches = ({ domain, hostOnly, path }: Kept, asked: { host: string; path: string }) =>
    (hostOnly ? asked.host === domain : isWithin(asked.host, domain)) && isBelow(asked.path, path)
  return {
    plant: ({ name, value, domain, path }) => {
      const cookie = { name, value, domain, hostOnly: false, path }
      kept.set(keyOf(cookie), cookie)
    },
    take(headers, { host }) {
      for (const line of (headers['set-cookie'] ?? []) as string[]) {
        const [pair = '', ...attributes] = line.split(/; */)
        const of = (name: string) => attributes.find((text) => text.toLowerCase().startsWith(`${name}=`))?.slice(name.length + 1)
        const domain = of('domain')
        if (domain !== undefined && !isWithin(host, domain)) continue
        const at = pair.indexOf('=')
        const cookie = {
          name: pair.slice(0, at),
          value: pair.slice(at + 1),
          domain: domain ?? host,
          hostOnly: domain === undefined,
          path: of('path') ?? '/',
        }
        if (/^Expires=Thu, 01 Jan 1970/m.test(attributes.join('\n'))) kept.delete(keyOf(cookie))
        else kept.set(keyOf(cookie), cookie)
      }
    },
    header(asked) {
      const sent = [...kept.values()].filter((cookie) => matches(cookie, asked)).sort((one, other) => other.path.length - one.path.length)
      return sent.length === 0 ? undefined : sent.map(({ name, value }) => (name === '' ? value : `${name}=${value}`)).join('; ')
    },
    names: () => [...kept.values()].map(({ name }) => name),
  }
}

function isWithin(host: string, domain: string): boolean {
  return host === domain || host.endsWith(`.${domain}`)
}

function isBelow(asked: string, path: string): boolean {
  return asked === path || (asked.startsWith(path) && (path.endsWith('/') || asked[path.length] === '/'))
}
