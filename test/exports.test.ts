import { expect, test } from 'vitest'
import * as doorward from '../src'
import * as admin from '../src/client/admin'
import * as captcha from '../src/client/captcha'
import * as client from '../src/client/client'
import * as passkeys from '../src/client/passkeys'
import * as react from '../src/client/react'
import * as testing from '../src/testing'

// A host's imports break when one of these goes: taking one away, or renaming it, is a major version.
test('the package exports these names and no others', () => {
  expect(Object.keys(doorward).sort()).toEqual([
    'ACTIVATION_WITHHELD',
    'AppleClient',
    'ConfigurationError',
    'DiscordClient',
    'DuplicateRecordError',
    'FacebookClient',
    'GitHubClient',
    'GitLabClient',
    'GoogleClient',
    'Html',
    'LinkedInClient',
    'MicrosoftClient',
    'NotImplementedError',
    'OidcClient',
    'ReferencedRecordError',
    'SlackClient',
    'TwitchClient',
    'argon2idHasher',
    'aspNetIdentityReader',
    'auditLog',
    'bcryptHasher',
    'bcryptReader',
    'breachedPasswords',
    'checkTables',
    'createAuthRouter',
    'createAuthTables',
    'createGuards',
    'createHttpClient',
    'createKnexStore',
    'createTokenVerifier',
    'csrfGuard',
    'csrfToken',
    'djangoPbkdf2Reader',
    'drizzleRunner',
    'errorHandler',
    'errors',
    'findAuth',
    'firebaseScryptReader',
    'getAuth',
    'getSession',
    'getUser',
    'html',
    'idempotency',
    'knexCounters',
    'knexOn',
    'kyselyRunner',
    'memoryCounters',
    'metrics',
    'migrationSource',
    'migrationSourceFor',
    'newPasswordTask',
    'passportProvider',
    'pepperedReader',
    'prismaRunner',
    'proofOfWork',
    'providersFromEnv',
    'purgeExpired',
    'rateLimit',
    'redisCounters',
    'rehashingHasher',
    'requireInternalToken',
    'sealer',
    'secondFactorTask',
    'settingsFromEnv',
    'smtpMailer',
    'standardWebhook',
    'task',
    'texts',
    'turnstile',
  ])
})

test('doorward/testing exports the contract of a store and the test kit', () => {
  expect(Object.keys(testing).sort()).toEqual([
    'answer',
    'linkTokenOf',
    'loginAs',
    'mailbox',
    'openSessionAs',
    'startFakeProvider',
    'storeContract',
    'testClock',
    'virtualAuthenticator',
  ])
})

test('the entries for browsers export a client each, and the hooks and components of React', () => {
  expect(Object.keys(client).sort()).toEqual(['AuthClientError', 'createAuthClient'])
  expect(Object.keys(passkeys).sort()).toEqual(['askAuthenticator', 'routes', 'signal'])
  expect(Object.keys(captcha)).toEqual(['solveCaptcha'])
  expect(Object.keys(admin).sort()).toEqual(['adminTable', 'createAdminClient'])
  expect(Object.keys(react).sort()).toEqual(['AuthProvider', 'RequireAuth', 'SignedIn', 'SignedOut', 'useAuth', 'useUser'])
})

test('errors holds every error class and nothing else', () => {
  const others = Object.entries(doorward.errors).filter(([name, value]) => !(name.endsWith('Error') && value.prototype instanceof Error))

  expect(others).toEqual([])
  expect(doorward.errors.ConfigurationError).toBe(doorward.ConfigurationError)
})
