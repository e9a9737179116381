import supertest from 'supertest'
import { afterAll, afterEach, beforeAll } from 'vitest'
import { type Mounted, type MountOptions, mount } from '../support/app'
import type { Database, OpenDatabase, OpenOptions } from '../support/databases'

export type HttpResponse = supertest.Response

/** One database for a file's tests on it, which look at rows of their own; what they mount is closed after each. */
export function onDatabase(database: Database, options: OpenOptions = {}) {
  let opened: OpenDatabase
  const hosts: Mounted[] = []
  beforeAll(async () => {
    opened = await database.open(options)
  })
  afterEach(async () => {
    await Promise.all(hosts.splice(0).map((host) => host.close()))
  })
  afterAll(() => opened.close())
  return {
    opened: () => opened,
    async start(options: Omit<MountOptions, 'knex'> & Partial<Pick<MountOptions, 'knex'>> = {}): Promise<Mounted> {
      const host = await mount({ knex: opened.knex, ...options })
      hosts.push(host)
      return host
    },
  }
}

let people = 0

/** Somebody no other test has met. */
export function newPerson(profile: Record<string, unknown> = {}): { sub: string; email: string } & Record<string, unknown> {
  people += 1
  const sub = `person-${people}-${process.pid}`
  return { sub, email: `${sub}@example.test`, email_verified: true, name: `Person ${people}`, picture: null, ...profile }
}

export interface Step {
  key?: string
  /** The Cookie header: this client keeps none by itself. */
  cookie?: string | null
  headers?: Record<string, string>
}

/** GET login as a client without a cookie jar; the person then says yes at the provider. */
export async function begin(mounted: Mounted, step: Step & { query?: Record<string, string>; profile?: Record<string, unknown> } = {}) {
  const { key = 'corp', query = {}, profile } = step
  const response = await send(mounted, `${mounted.prefix}/oauth/${key}/login?${new URLSearchParams(query)}`, step)
  if (response.status !== 302) throw new Error(`login answered ${response.status}: ${response.text}`)
  const location = String(response.headers['location'])
  const { callbackQuery, params } = mounted.provider.authorize(location, profile ? { profile } : {})
  return { response, location, params, query: callbackQuery, state: String(params.get('state')), cookie: cookiePair(response) ?? '' }
}

/** GET callback, with exactly this query and Cookie header. */
export function callBack(mounted: Mounted, query: Record<string, string> | string, step: Step = {}): Promise<HttpResponse> {
  const search = typeof query === 'string' ? query : new URLSearchParams(query)
  return send(mounted, `${mounted.prefix}/oauth/${step.key ?? 'corp'}/callback?${search}`, step)
}

async function send(mounted: Mounted, path: string, { cookie, headers = {} }: Step): Promise<HttpResponse> {
  return supertest(mounted.app)
    .get(path)
    .set({ ...headers, ...(cookie ? { Cookie: cookie } : {}) })
}

/** `name=value` as a browser would send it back; null when the response does not set it. */
export function cookiePair(response: HttpResponse, name = 'oauth_state'): string | null {
  return (
    setCookies(response)
      .find((line) => line.startsWith(`${name}=`))
      ?.split('; ')[0] ?? null
  )
}

/** Attribute names in lower case; a flag's value is ''. */
export function cookieAttributes(response: HttpResponse, name = 'oauth_state'): Record<string, string> | null {
  const line = setCookies(response).find((candidate) => candidate.startsWith(`${name}=`))
  if (line === undefined) return null
  const attributes = line.split('; ').slice(1)
  return Object.fromEntries(attributes.map((text) => [(text.split('=')[0] ?? '').toLowerCase(), text.split('=').slice(1).join('=')]))
}

/** Emptied, and told to go now. */
export function isCleared(response: HttpResponse, name = 'oauth_state'): boolean {
  const expires = cookieAttributes(response, name)?.['expires']
  return cookiePair(response, name) === `${name}=` && expires !== undefined && Date.parse(expires) === 0
}

export function setCookies(response: HttpResponse): string[] {
  return (response.headers['set-cookie'] ?? []) as unknown as string[] // one header that Node gives as a list
}

/** How many calls the provider has seen, of any kind. */
export function providerCalls(mounted: Mounted): number {
  return mounted.provider.requests.length
}

export function bearer(response: HttpResponse): Record<string, string> {
  return { Authorization: `Bearer ${response.body.access_token}` }
}
