import { type Browser, type Mounted, signIn } from '../support/app'
import { type HttpResponse, newPerson } from './redirect-steps'

export interface Member {
  browser: Browser
  userId: string
  /** The access token. */
  token: string
  refreshToken: string
  email: string
  profile: ReturnType<typeof newPerson>
}

/** Somebody signed in through a provider, in a browser of their own. */
export async function member(
  host: Mounted,
  { key = 'corp', profile = newPerson() }: { key?: string; profile?: Member['profile'] } = {},
): Promise<Member> {
  const browser = host.browser()
  const { body, status, text } = await signIn(host, browser, { key, profile })
  if (status !== 200) throw new Error(`signing in answered ${status}: ${text}`)
  return { browser, userId: body.user_id, token: body.access_token, refreshToken: body.refresh_token, email: profile.email, profile }
}

export interface LinkStep {
  key?: string
  body?: object
  /** Whose access token; null: none. */
  token?: string | null
}

export async function requestLink(
  host: Mounted,
  { browser, token }: Pick<Member, 'browser' | 'token'>,
  step: LinkStep = {},
): Promise<HttpResponse> {
  const { key = 'acme', body, token: other = token } = step
  const request = browser.post(`${host.prefix}/oauth/${key}/link`)
  if (other !== null) request.set('Authorization', `Bearer ${other}`)
  if (other !== null) tokens.set(browser, other)
  return body === undefined ? request : request.send(body)
}

/** The link begun, and the person saying yes at the provider: what the browser is sent back with. */
export async function beginLink(host: Mounted, who: Pick<Member, 'browser' | 'token'>, { key = 'acme', profile = newPerson() } = {}) {
  const response = await requestLink(host, who, { key })
  if (response.status !== 200) throw new Error(`link answered ${response.status}: ${response.text}`)
  return { response, profile, query: host.provider.authorize(response.body.authorize_url, { profile }).callbackQuery }
}

/** The callback; where it gave a ticket, because nobody is signed in at the callback, whoever began redeems it. */
export async function finishLink(host: Mounted, browser: Browser, query: Record<string, string>, key = 'acme'): Promise<HttpResponse> {
  return redeemed(host, browser, await browser.get(`${host.prefix}/oauth/${key}/callback`).query(query))
}

export async function redeemed(host: Mounted, browser: Browser, callback: HttpResponse): Promise<HttpResponse> {
  const token = tokens.get(browser)
  if (typeof callback.body?.link_ticket !== 'string' || token === undefined) return callback
  return redeem(host, browser, callback.body.link_ticket, token)
}

export async function redeem(host: Mounted, browser: Browser, ticket: unknown, token: string | null): Promise<HttpResponse> {
  const request = browser.post(`${host.prefix}/oauth/link/redeem`)
  if (token !== null) request.set('Authorization', `Bearer ${token}`)
  return request.send({ ticket })
}

/** Who began the last link in a browser. */
const tokens = new WeakMap<Browser, string>()

/** The whole dance. */
export async function link(
  host: Mounted,
  who: Pick<Member, 'browser' | 'token'>,
  { key = 'acme', profile = newPerson() } = {},
): Promise<HttpResponse> {
  const { query } = await beginLink(host, who, { key, profile })
  return finishLink(host, who.browser, query, key)
}
