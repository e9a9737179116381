import { randomBytes } from 'node:crypto'
import supertest from 'supertest'
import { codeChallengeOf } from '../../src/social/app-redirect/exchange-code'
import { authenticator } from '../mfa/authenticator'
import { newPerson } from '../social/redirect-steps'
import { type Browser, type Mounted, startLogin } from '../support/app'

export const nativeApp = 'com.example.app:/signed-in'
export const singlePageApp = 'https://spa.example.test/signed-in?from=login'
export const appSettings = { appRedirects: [nativeApp, singlePageApp] } as const
export const html = { Accept: 'text/html,application/xhtml+xml;q=0.9' }

export type Answer = supertest.Response

export interface Step {
  redirectTo?: string
  profile?: ReturnType<typeof newPerson>
  browser?: Browser
  headers?: Record<string, string>
}

/** The browser's half: the app opens it, the person signs in at the provider, and it comes back to the callback. */
export async function browse(host: Mounted, { redirectTo = nativeApp, profile = newPerson(), headers = html, ...step }: Step = {}) {
  const browser = step.browser ?? host.browser()
  const verifier = randomBytes(32).toString('base64url')
  const query = { redirect_to: redirectTo, code_challenge: codeChallengeOf(verifier) }
  const { callbackQuery } = await startLogin(host, browser, { profile, query })
  const callback = await browser.get('/auth/oauth/corp/callback').set(headers).query(callbackQuery)
  return { browser, verifier, callback, callbackQuery, profile, code: codeOf(callback) }
}

/** `code` of the address that an answer sends the browser to; empty: none. */
export function codeOf({ headers }: Answer): string {
  return /[?&]code=([\w-]+)$/.exec(String(headers['location'] ?? ''))?.[1] ?? ''
}

/** The app's half: a client that has no cookie. */
export function exchange(host: Mounted, { code, verifier }: { code: string; verifier: string }): supertest.Test {
  return supertest(host.app).post('/auth/oauth/exchange').send({ code, code_verifier: verifier })
}

export const bearerOf = ({ body }: Answer) => ({ Authorization: `Bearer ${body.access_token}` })

export const isAlive = async (host: Mounted, { body }: Answer) =>
  (await supertest(host.app).post('/auth/refresh').send({ refresh_token: body.refresh_token })).status === 200

/** Somebody whose login by the provider ends in a challenge. */
export async function enrolled(host: Mounted) {
  const { code, verifier, profile } = await browse(host)
  const login = await exchange(host, { code, verifier })
  const enrolment = await supertest(host.app).post('/auth/mfa/enroll').set(bearerOf(login)).send({})
  const app = authenticator(enrolment.body.secret, host.clock)
  await supertest(host.app).post('/auth/mfa/confirm').set(bearerOf(login)).send({ code: app.code() })
  return { app, profile }
}

/** What the form of the challenge page would send. */
export function formOf({ text }: Answer): { action: string; mfaToken: string } {
  const [, action = ''] = /<form method="post" action="([^"]+)">/.exec(text) ?? []
  const [, mfaToken = ''] = /name="mfa_token" value="([^"]+)"/.exec(text) ?? []
  return { action, mfaToken }
}

export const submit = (browser: Browser, page: Answer, code: string) =>
  browser
    .post(formOf(page).action)
    .set({ Origin: 'null', 'Sec-Fetch-Site': 'same-origin', ...html })
    .type('form')
    .send({ mfa_token: formOf(page).mfaToken, code })
