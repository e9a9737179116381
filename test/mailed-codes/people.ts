import type supertest from 'supertest'
import type { LinkCodePurpose } from '../../src/store/auth-store'
import { bearerOf, type LocalHost, type LocalOptions, newAddress, onLocal, otherPassword, password, signedIn } from '../local/people'
import type { Browser } from '../support/app'
import type { Database } from '../support/databases'
import { tokenOf } from '../support/mailbox'

/** Hosts whose mails carry a link and a code, and that answer at once. */
export function onCodes(database: Database) {
  const { start, opened } = onLocal(database)
  return {
    opened,
    start: ({ settings, ...rest }: LocalOptions = {}) =>
      start({ ...rest, settings: { mailedCodes: 'both', timingGridMilliseconds: 0, publicUrl: 'https://app.example.test', ...settings } }),
  }
}

/** What a person has after a request. */
export interface Asked {
  purpose: LinkCodePurpose
  /** To which the mail went. */
  email: string
  userId: string
  requestToken: string
  /** Of the mailed link. */
  token: string
  code: string
  browser: Browser
  /** Of the session that asked. */
  headers: Record<string, string>
}

/** A request for a mail, by a person who may make it. */
export interface Request {
  path: string
  body: object
  /** To which the mail goes. */
  email: string
  userId: string
  headers: Record<string, string>
}

const kinds = {
  ACTIVATION: 'activation',
  PASSWORD_RESET: 'password_reset',
  EMAIL_VERIFICATION: 'email_verification',
  EMAIL_CHANGE: 'email_change',
} as const satisfies Record<LinkCodePurpose, string>

/** Who asks, how, and where the code is redeemed. */
export const ways: Record<LinkCodePurpose, { path: string; more: object; prepare(host: LocalHost): Promise<Request> }> = {
  ACTIVATION: {
    path: '/activate',
    more: {},
    async prepare() {
      const email = newAddress()
      return { path: '/signup', body: { email, password }, email, userId: '', headers: {} }
    },
  },
  PASSWORD_RESET: {
    path: '/password-reset/confirm',
    more: { new_password: otherPassword },
    async prepare(host) {
      const { email, userId } = await signedIn(host)
      return { path: '/password-reset/request', body: { email }, email, userId, headers: {} }
    },
  },
  EMAIL_VERIFICATION: {
    path: '/email-verify/confirm',
    more: {},
    async prepare(host) {
      const person = await signedIn(host, { emailVerifiedAt: null })
      return { path: '/email-verify/request', body: {}, email: person.email, userId: person.userId, headers: bearerOf(person) }
    },
  },
  EMAIL_CHANGE: {
    path: '/email-change/confirm',
    more: {},
    async prepare(host) {
      const person = await signedIn(host)
      const email = newAddress()
      return { path: '/email-change/request', body: { new_email: email }, email, userId: person.userId, headers: bearerOf(person) }
    },
  },
}

export const purposes = Object.keys(ways) as LinkCodePurpose[] // the record has exactly these keys

export async function ask(host: LocalHost, purpose: LinkCodePurpose, browser: Browser = host.browser()): Promise<Asked> {
  return send(host, purpose, await ways[purpose].prepare(host), browser)
}

export async function send(host: LocalHost, purpose: LinkCodePurpose, request: Request, browser: Browser = host.browser()): Promise<Asked> {
  const { path, body, headers, email, userId } = request
  const answer = await browser.post(`${host.prefix}${path}`).set(headers).send(body)
  if (answer.status !== 201 && answer.status !== 202) throw new Error(`${path} answered ${answer.status}: ${answer.text}`)
  const mail = await host.mails.next({ kind: kinds[purpose], to: email })
  return {
    purpose,
    email,
    userId,
    requestToken: answer.body.request_token,
    token: tokenOf(mail),
    code: mail.code ?? '',
    browser,
    headers,
  }
}

/** At the route of `purpose`, which can be another than the one that was asked for. */
export function redeem(
  host: LocalHost,
  { headers, browser }: Pick<Asked, 'headers' | 'browser'>,
  purpose: LinkCodePurpose,
  proof: object,
): supertest.Test {
  const { path, more } = ways[purpose]
  return browser
    .post(`${host.prefix}${path}`)
    .set(headers)
    .send({ ...more, ...proof })
}

export const byCode = ({ code, requestToken }: Asked) => ({ code, request_token: requestToken })
export const byLink = ({ token }: Asked) => ({ token })

/** Another code than this one. */
export function wrong({ code }: Pick<Asked, 'code'>, by = 1): string {
  return String((Number(code) + by) % 100_000_000).padStart(8, '0')
}
