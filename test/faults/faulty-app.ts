import express, { type Express } from 'express'
import type { Knex } from 'knex'
import { type AuthRouter, createAuthRouter, createKnexStore, type Logger, type Mailer, OidcClient } from '../../src'
import { baseUrl, testSecret } from '../support/app'
import { testClock } from '../support/clock'
import { checkCookies } from '../support/cookie-check'
import { fastHasher } from '../support/fast-hasher'
import { linkTemplates } from '../support/mailbox'

/** Of the host that prepares and looks, and of the one that something happens to: one takes the other's tokens. */
export const faultSettings = {
  ...linkTemplates,
  jwtSecret: testSecret,
  mfaEnabled: true,
  mfaIssuer: 'Example',
  mfaSecretKey: Buffer.from('a key of exactly thirty-two byte').toString('base64'),
  oauthEnabled: true,
  oauthRedirectBaseUrl: baseUrl,
  oauthLinkByVerifiedEmail: true,
  cookieSecure: false,
  tokenDelivery: 'both',
} as const

/** Guesses are counted: a fault must cost nobody a guess. */
export const faultThrottle = { routes: false, signup: false, links: false, mail: false } as const

export type ClientOptions = ConstructorParameters<typeof OidcClient>[0]

export interface FaultyAppOptions {
  knex: Knex
  /** By registration key; the provider is the other host's. */
  clients: Record<string, ClientOptions>
  mailer: Mailer
  logger: Logger
}

/** The host that something happens to. Its clock stands where `mount`'s does. */
export function faultyApp({ knex, clients, mailer, logger }: FaultyAppOptions): { app: Express; auth: AuthRouter } {
  const auth = createAuthRouter({
    settings: faultSettings,
    store: createKnexStore({ knex }),
    providers: Object.fromEntries(Object.entries(clients).map(([key, options]) => [key, new OidcClient(options)])),
    mailer,
    environment: 'test',
    passwordHasher: fastHasher(),
    throttle: faultThrottle,
    logger,
    now: testClock().now,
  })
  const app = express().use(checkCookies())
  app.use('/auth', auth)
  return { app, auth }
}
