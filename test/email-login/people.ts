import type supertest from 'supertest'
import type { UserRecord } from '../../src'
import { type LocalHost, type LocalOptions, newAddress, onLocal } from '../local/people'
import { addUser } from '../social/accounts-at-hand'
import type { Browser } from '../support/app'
import type { Database } from '../support/databases'
import { tokenOf } from '../support/mailbox'

export { type LocalHost, newAddress, userOf } from '../local/people'

export const loginTemplate = { emailLoginUrlTemplate: 'https://app.example.test/in/{token}' }

/** Hosts with login by email; in delivery `session` unless the test says otherwise. */
export function onEmailLogin(database: Database) {
  const { start, opened } = onLocal(database)
  return {
    opened,
    start: ({ settings, ...rest }: LocalOptions = {}) =>
      start({ ...rest, settings: { emailLogin: 'both', tokenDelivery: 'session', ...loginTemplate, ...settings } }),
  }
}

/** An active account whose address is proven. */
export function person(host: LocalHost, changes: Partial<UserRecord> = {}): Promise<UserRecord> {
  return addUser(host.knex, { email: newAddress(), emailVerifiedAt: host.clock.now(), ...changes })
}

export interface Asked {
  browser: Browser
  requestToken: string
  /** Of the mail; '' where it has none. */
  token: string
  code: string
}

/** Asks for a mail in a browser, and reads it. */
export async function ask(host: LocalHost, email: string, options: { browser?: Browser; body?: object } = {}): Promise<Asked> {
  const { browser = host.browser(), body = {} } = options
  const { status, text, body: answer } = await request(host, email, { browser, body })
  if (status !== 202) throw new Error(`the request answered ${status}: ${text}`)
  const mail = await host.mails.next({ kind: 'email_login', to: email })
  return { browser, requestToken: answer.request_token, token: mail.url === null ? '' : tokenOf(mail), code: mail.code ?? '' }
}

export function request(
  host: LocalHost,
  email: string,
  { browser = host.browser(), body = {} }: { browser?: Browser; body?: object } = {},
) {
  return browser.post(`${host.prefix}/email-login/request`).send({ email, ...body })
}

export function confirm(host: LocalHost, body: object, browser: Browser = host.browser()): supertest.Test {
  return browser.post(`${host.prefix}/email-login/confirm`).send(body)
}

/** Another code than this one. */
export function wrong(code: string): string {
  return String((Number(code) + 1) % 100_000_000).padStart(8, '0')
}
