import type supertest from 'supertest'
import type { VirtualAuthenticator } from '../../src/testing'
import { type LocalHost, type LocalOptions, newAddress, onLocal } from '../local/people'
import type { Browser } from '../support/app'
import type { Database } from '../support/databases'
import { tokenOf } from '../support/mailbox'
import type { Options } from './hand-made'
import { loginOptions, newAuthenticator, passkeySettings } from './people'

export const signupSettings = { ...passkeySettings, signupWith: ['password', 'passkey'] } as const
const unhurried = { mail: false, signup: false, routes: false, login: false, links: false } as const

/** `onLocal`, with sign-up by password and by passkey. */
export function onSignups(database: Database) {
  const { start, opened } = onLocal(database)
  return {
    opened,
    start: ({ settings, options, ...rest }: LocalOptions = {}): Promise<LocalHost> =>
      start({ ...rest, settings: { ...signupSettings, ...settings }, options: { throttle: unhurried, ...options } }),
  }
}

/** What makes a passkey: the authenticator of the tests, or one whose every byte is the test's. */
interface Maker {
  create(options: never): object
}

export async function signupOptions(host: LocalHost, email: string, browser: Browser = host.browser()) {
  const { status, body, text } = await browser.post(`${host.prefix}/signup/passkey/options`).send({ email })
  if (status !== 200) throw new Error(`/signup/passkey/options answered ${status}: ${text}`)
  return body as Options & { challenge_token: string; user: { id: string } }
}

/** The body of `POST /signup/passkey`. */
export async function signupBody(host: LocalHost, email: string, maker: Maker, more: object = {}) {
  const options = await signupOptions(host, email)
  return { email, credential: maker.create(options as never), challenge_token: options.challenge_token, ...more }
}

export function signUp(host: LocalHost, body: object, browser: Browser = host.browser()): supertest.Test {
  return browser.post(`${host.prefix}/signup/passkey`).send(body)
}

export interface Newcomer {
  email: string
  authenticator: VirtualAuthenticator
  /** The browser of the sign-up. */
  browser: Browser
  /** The token of the mailed link. */
  link: string
  answer: supertest.Response
}

/** Signed up with a passkey, and not activated. */
export async function newcomer(
  host: LocalHost,
  {
    email = newAddress(),
    authenticator = newAuthenticator(),
    ...more
  }: { email?: string; authenticator?: VirtualAuthenticator } & object = {},
): Promise<Newcomer> {
  const browser = host.browser()
  const answer = await signUp(host, await signupBody(host, email, authenticator, more), browser)
  if (answer.status !== 201) throw new Error(`/signup/passkey answered ${answer.status}: ${answer.text}`)
  return { email, authenticator, browser, link: tokenOf(await host.mails.next({ kind: 'activation', to: email })), answer }
}

export function activate(host: LocalHost, token: string, body: object = {}, browser: Browser = host.browser()): supertest.Test {
  return browser.post(`${host.prefix}/activate`).send({ token, ...body })
}

/** The pending passkey as evidence: what the authenticator answers to the options of a login. */
export async function shownPasskey(host: LocalHost, authenticator: Pick<VirtualAuthenticator, 'get'>, lies: object = {}) {
  const options = await loginOptions(host)
  return { credential: authenticator.get(options, lies), challenge_token: options.challenge_token }
}
