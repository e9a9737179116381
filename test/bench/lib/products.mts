/** How each contestant with accounts is spoken to: the same person signs up, logs in and comes by way of the provider. */
import { type Answer, type Connection, cookieHeader, mustBe, requestText, takeCookies } from './connection.mjs'
import { type Server, startServer } from './start-server.mjs'

export interface Person {
  email: string
  password: string
}

export interface Client {
  /** Requests, as text. */
  signUp(person: Person): string
  logIn(person: Person): string
  isLoggedIn(answer: Answer): boolean
  /** What a logged-in person sends to the guarded route. */
  credentials(answer: Answer): Record<string, string>
  beginSocial: string
  authorizeUrl(answer: Answer): string
  /** What its forms were given with, besides what the beginning gives. */
  cookies?: Readonly<Record<string, string>>
}

export interface Product {
  name: string
  packages: readonly string[]
  start(environment?: Readonly<Record<string, string>>): Promise<Server>
  client(connection: Connection): Promise<Client>
}

const location = (answer: Answer) => /^location: *(\S+)/im.exec(mustBe(302, answer).head)?.[1] ?? ''

/** JSON in, a pair of tokens out; a redirect to the provider. */
const withTokens: Client = {
  signUp: (person) => requestText('/auth/signup', { json: person }),
  logIn: (person) => requestText('/auth/login', { json: person }),
  isLoggedIn: (answer) => answer.status === 200 && /"access_token":"[^"]+".*"refresh_token":"[^"]+"/.test(answer.body),
  credentials: (answer) => ({ authorization: `Bearer ${(JSON.parse(answer.body) as { access_token: string }).access_token}` }), // as just seen
  beginSocial: requestText('/auth/oauth/stub/login'),
  authorizeUrl: location,
}

/** The same accounts, and a session behind a cookie. */
const withSession = (cookie: string): Client => ({
  ...withTokens,
  isLoggedIn: (answer) => answer.status === 200 && cookie in takeCookies(answer),
  credentials: (answer) => cookieHeader({ [cookie]: takeCookies(answer)[cookie] ?? '' }),
})

function product(name: string, file: string, packages: readonly string[], client: Product['client'], own = {}): Product {
  return { name, packages, start: (environment) => startServer(file, { environment: { ...own, ...environment } }), client }
}

export const doorward = product('doorward', 'doorward.mjs', ['argon2', 'knex', 'better-sqlite3'], async () => withTokens, {
  BENCH_HASH: 'argon2',
})
export const doorwardNodeRs = product('doorward, @node-rs/argon2', 'doorward.mjs', ['@node-rs/argon2'], async () => withTokens)
export const doorwardSession = product('doorward, session', 'doorward.mjs', ['knex'], async () => withSession('auth_session'), {
  BENCH_DELIVERY: 'session',
})
export const expressSession = product('express-session', 'express-session.mjs', ['express-session', 'connect-session-knex'], async () =>
  withSession('connect.sid'),
)
export const byHand = product('by hand', 'by-hand.mjs', ['argon2', 'better-sqlite3'], async () => withTokens)
export const byHandUngated = product('by hand, no gate', 'by-hand.mjs', ['argon2'], async () => withTokens, { BENCH_GATE: 'Infinity' })
export const byHandOnKnex = product('by hand, Knex', 'by-hand.mjs', ['knex'], async () => withTokens, { BENCH_STORE: 'knex' })
export const passport = product(
  'Passport',
  'passport.mjs',
  ['passport', 'passport-local', 'passport-oauth2', 'express-session'],
  async () => withTokens,
)
export const passportWithText = product('Passport, secret as text', 'passport.mjs', ['passport'], async () => withTokens, {
  BENCH_SECRET: 'text',
})
export const passportOnKnex = product('Passport, Knex', 'passport.mjs', ['knex'], async () => withTokens, { BENCH_STORE: 'knex' })

const betterAuthSession = 'better-auth.session_token'
const betterAuthClient: Client = {
  signUp: (person) => requestText('/api/auth/sign-up/email', { json: { ...person, name: 'Ana' } }),
  logIn: (person) => requestText('/api/auth/sign-in/email', { json: person }),
  isLoggedIn: (answer) => answer.status < 400 && betterAuthSession in takeCookies(answer),
  credentials: (answer) => cookieHeader(takeCookies(answer)),
  beginSocial: requestText('/api/auth/sign-in/social', { json: { provider: 'stub', callbackURL: '/' } }),
  authorizeUrl: (answer) => (JSON.parse(mustBe(200, answer).body) as { url: string }).url, // as its documentation says
}
export const betterAuth = product('better-auth', 'better-auth.mjs', ['better-auth'], async () => betterAuthClient)
export const betterAuthArgon2 = product('better-auth, argon2', 'better-auth.mjs', ['better-auth'], async () => betterAuthClient, {
  BENCH_HASH: 'argon2',
})

const authJsSession = 'authjs.session-token'
/** Its forms carry a token that belongs to a cookie; one pair is good for any number of them. */
async function authJsClient(connection: Connection): Promise<Client> {
  const answer = mustBe(200, await connection.ask(requestText('/auth/csrf')))
  const { csrfToken } = JSON.parse(answer.body) as { csrfToken: string } // as its documentation says
  const cookies = takeCookies(answer)
  const headers = { ...cookieHeader(cookies), 'x-auth-return-redirect': '1' }
  return {
    cookies,
    signUp: (person) => requestText('/signup', { json: person }),
    logIn: (person) => requestText('/auth/callback/credentials', { headers, form: { csrfToken, ...person } }),
    isLoggedIn: (answer) => answer.status < 400 && authJsSession in takeCookies(answer),
    credentials: (answer) => cookieHeader(takeCookies(answer)),
    beginSocial: requestText('/auth/signin/stub', { headers, form: { csrfToken, callbackUrl: '/' } }),
    authorizeUrl: (answer) => (JSON.parse(mustBe(200, answer).body) as { url: string }).url,
  }
}
export const authJs = product('Auth.js', 'authjs.mjs', ['@auth/express'], authJsClient)

let people = 0
export function newPerson(): Person {
  return { email: `person-${people++}@example.test`, password: 'a quiet harbour in winter' }
}

/** One who is signed up and logged in: what the guarded route is sent. */
export async function logInSomebody(client: Client, connection: Connection): Promise<Record<string, string>> {
  const person = newPerson()
  const signedUp = await connection.ask(client.signUp(person))
  if (signedUp.status >= 300) throw new Error(`signup answered ${signedUp.status}: ${signedUp.body}`)
  const answer = await connection.ask(client.logIn(person))
  if (!client.isLoggedIn(answer)) throw new Error(`login answered ${answer.status}: ${answer.body}`)
  return client.credentials(answer)
}
