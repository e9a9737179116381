import type { RequestHandler } from 'express'
import { type AuthRouterOptions, getAuth } from '../../src'
import { password } from '../local/people'
import type { Mounted, MountOptions } from '../support/app'
import { type CookieJar, cookieJar } from '../support/cookie-jar'
import { type RawAnswer, type RawRequest, sendRaw } from '../support/send-raw'

export const site = 'app.example.test'
export const html = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'

type Settings = Partial<AuthRouterOptions['settings']>

/** A host with a page behind a login, and a page where people sign in. */
export function withPages(settings: Settings = {}): Omit<MountOptions, 'knex'> {
  const seen: RequestHandler = (req, res) => void res.json({ seen: req.originalUrl, by: getAuth(req).sub })
  return {
    settings: { tokenDelivery: 'cookie', loginUrl: '/login', ...settings },
    options: { throttle: { routes: false } },
    host: (app, { guards }) => {
      app.all('/orders', guards.requireLogin(), seen)
      app.all('/orders/:id', guards.requireLogin(), seen)
      app.get('/login', (_req, res) => void res.send('sign in'))
    },
  }
}

/** Where `/continue` is in this delivery. */
export const continueAt = { cookie: '/auth/continue', both: '/auth/cookie/continue' } as const

/** One request of a browser, which keeps what the answer sets. */
export async function ask(host: Pick<Mounted, 'app'>, jar: CookieJar, asked: Partial<RawRequest> & { path: string }): Promise<RawAnswer> {
  const { path, headers = {}, ...rest } = asked
  const [bare = ''] = path.split('?')
  const cookie = jar.header({ host: site, path: bare })
  const all = { Host: site, Accept: html, ...headers, ...(cookie && { Cookie: cookie }) }
  const answer = await sendRaw(host.app, { method: 'GET', path, ...rest, headers: all })
  jar.take(answer.headers, { host: site, path: bare })
  return answer
}

/** Follows redirects as long as a browser does. */
export async function visit(host: Pick<Mounted, 'app'>, jar: CookieJar, path: string, headers: RawRequest['headers'] = {}) {
  const trail = [path]
  for (;;) {
    const answer = await ask(host, jar, { path: trail.at(-1) ?? '', headers })
    const { location } = answer.headers
    if (location === undefined) return { ...answer, trail }
    trail.push(location)
    if (!location.startsWith('/') || trail.length > 20) return { ...answer, trail }
  }
}

/** Signs in where the answer sets cookies. */
export async function signedInJar(host: Mounted, email: string, base: '' | '/cookie' = ''): Promise<CookieJar> {
  const jar = cookieJar()
  const answer = await ask(host, jar, {
    method: 'POST',
    path: `${host.prefix}${base}/login`,
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ email, password }),
  })
  if (answer.status !== 200) throw new Error(`login answered ${answer.status}: ${answer.text}`)
  return jar
}
