import type supertest from 'supertest'
import { expect } from 'vitest'
import { type LocalHost, type LocalOptions, onLocal, password } from '../local/people'
import { type EnrolledMember, enrolled } from '../mfa/people'
import { withFactors } from '../passkeys/people'
import type { Browser } from '../support/app'
import type { Database } from '../support/databases'

export const firefox = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'
export const unhurried = { login: false, signup: false, mfa: false, links: false, mail: false, routes: false } as const
export const dayMs = 86_400_000

/** How each delivery's routes begin that set cookies. */
export const deliveries = { cookie: '', both: '/cookie', session: '' } as const
export type Delivery = keyof typeof deliveries

/** `onLocal` in delivery `cookie`, with trust for 30 days, the second factor and passkeys. */
export function onTrust(database: Database) {
  const { start, opened } = onLocal(database)
  return {
    opened,
    start: ({ settings, options, ...rest }: LocalOptions = {}): Promise<LocalHost> =>
      start({
        ...rest,
        settings: { tokenDelivery: 'cookie', trustedDeviceDays: 30, ...withFactors, ...settings },
        options: { throttle: unhurried, ...options },
      }),
  }
}

export const send = (browser: Browser, path: string, body: object = {}): supertest.Test =>
  browser.post(`/auth${path}`).set('User-Agent', firefox).send(body)

export const login = (browser: Browser, { email }: { email: string }, base = '') => send(browser, `${base}/login`, { email, password })

/** Both steps of a login by password and code, in this browser. */
export async function verified(
  browser: Browser,
  person: Pick<EnrolledMember, 'email' | 'app'>,
  { base = '', body = { trust_device: true } as object } = {},
): Promise<supertest.Response> {
  const { body: challenge } = await login(browser, person, base)
  return send(browser, `${base}/mfa/verify`, { mfa_token: challenge.mfa_token, code: person.app.nextCode(), ...body })
}

export interface Trusting extends EnrolledMember {
  browser: Browser
}

/** An enrolled person with a verified address, whose browser is trusted. */
export async function trusting(
  host: LocalHost,
  { base = '', ...changes }: { base?: string } & Parameters<typeof enrolled>[1] = {},
): Promise<Trusting> {
  const person = await enrolled(host, { emailVerifiedAt: new Date(0), ...changes })
  const browser = host.browser()
  await trust(browser, person, base)
  return { ...person, browser }
}

export async function trust(browser: Browser, person: Pick<EnrolledMember, 'email' | 'app'>, base = ''): Promise<supertest.Response> {
  const response = await verified(browser, person, { base })
  expect([response.status, response.body.device_trusted]).toEqual([200, true])
  return response
}

/** Whether a login by password, in this browser, needs no second factor. */
export async function isTrusted(browser: Browser, person: { email: string }, base = ''): Promise<boolean> {
  const { status, body } = await login(browser, person, base)
  if (status !== 200) throw new Error(`login answered ${status}`)
  return body.mfa_required === false
}

export interface TrustRow {
  id: string
  user_id: string
  session_id: string
  token_hash: string
  digest: string
  name: string | null
  created_at: unknown
  last_used_at: unknown
  ends_at: unknown
}

export function trustRows({ knex }: Pick<LocalHost, 'knex'>, userId: string): Promise<TrustRow[]> {
  return knex('auth_trusted_devices').where({ user_id: userId }).orderBy('created_at')
}

/** The reasons of the `device.untrusted` events of this person, from now on. */
export function untrustedReasons({ auth }: LocalHost, userId: string): string[] {
  const reasons: string[] = []
  auth.events.on('device.untrusted', (event) => event.userId === userId && reasons.push(event.reason))
  return reasons
}
