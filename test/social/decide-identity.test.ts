import { describe, expect, test } from 'vitest'
import { AppError } from '../../src/core/errors'
import { decideIdentity } from '../../src/social/log-in-with-identity'
import { userRecord } from './accounts-at-hand'

const known = userRecord({ email: 'known@example.test' })
const owner = userRecord({ email: 'owner@example.test' })
const inactive = userRecord({ isActive: false })

const closed = { oauthLinkByVerifiedEmail: false, oauthAllowAccountCreation: false }
const linking = { ...closed, oauthLinkByVerifiedEmail: true }
const creating = { ...closed, oauthAllowAccountCreation: true }
const open = { oauthLinkByVerifiedEmail: true, oauthAllowAccountCreation: true }

const verified = { email: 'owner@example.test', emailVerified: true }
const unverified = { email: 'owner@example.test', emailVerified: false }
const silent = { email: 'owner@example.test', emailVerified: null }
const nameless = { email: null, emailVerified: null }

type Case = [string, Parameters<typeof decideIdentity>[0], Parameters<typeof decideIdentity>[1], Parameters<typeof decideIdentity>[2]]

function decided(...[, settings, profile, found]: Case): unknown {
  try {
    return decideIdentity(settings, profile, found)
  } catch (error) {
    return error instanceof AppError ? error.code : error
  }
}

describe('the identity resolution, line for line', () => {
  const neither = { linked: null, emailOwner: null }

  test.each<[...Case, unknown]>([
    ['linked', closed, verified, { linked: known, emailOwner: null }, { kind: 'log_in', user: known }],
    ['linked, and now without an email', closed, nameless, { linked: known, emailOwner: null }, { kind: 'log_in', user: known }],
    ['linked, the email is now of another account', open, verified, { linked: known, emailOwner: owner }, { kind: 'log_in', user: known }],
    [
      'linked, the email is of a deactivated account',
      open,
      verified,
      { linked: known, emailOwner: inactive },
      { kind: 'log_in', user: known },
    ],
    ['linked to a deactivated account', open, verified, { linked: inactive, emailOwner: null }, 'OAUTH_ACCOUNT_INACTIVE'],
    [
      'linked to a deactivated account, the email of an active one',
      open,
      verified,
      { linked: inactive, emailOwner: owner },
      'OAUTH_ACCOUNT_INACTIVE',
    ],
    ['not linked, no email', open, nameless, neither, 'OAUTH_EMAIL_MISSING'],
    ['not linked, no email, creation closed', closed, nameless, neither, 'OAUTH_EMAIL_MISSING'],
    ['email taken, verified', creating, verified, { linked: null, emailOwner: owner }, 'OAUTH_EMAIL_TAKEN'],
    ['email taken, unverified', creating, unverified, { linked: null, emailOwner: owner }, 'OAUTH_EMAIL_TAKEN'],
    ['email taken, the provider silent', creating, silent, { linked: null, emailOwner: owner }, 'OAUTH_EMAIL_TAKEN'],
    ['email taken by a deactivated account', creating, verified, { linked: null, emailOwner: inactive }, 'OAUTH_EMAIL_TAKEN'],
    ['email taken, creation closed', closed, verified, { linked: null, emailOwner: owner }, 'OAUTH_EMAIL_TAKEN'],
    ['linking, verified', linking, verified, { linked: null, emailOwner: owner }, { kind: 'link', user: owner }],
    ['linking, unverified', linking, unverified, { linked: null, emailOwner: owner }, 'OAUTH_EMAIL_UNVERIFIED'],
    [
      'linking, the provider silent: null is not treated as verified',
      linking,
      silent,
      { linked: null, emailOwner: owner },
      'OAUTH_EMAIL_UNVERIFIED',
    ],
    ['linking, verified, the owner deactivated', linking, verified, { linked: null, emailOwner: inactive }, 'OAUTH_ACCOUNT_INACTIVE'],
    ['linking, unverified, the owner deactivated', linking, unverified, { linked: null, emailOwner: inactive }, 'OAUTH_EMAIL_UNVERIFIED'],
    ['nobody, creation open', creating, verified, neither, { kind: 'create', email: verified.email }],
    ['nobody, creation open, unverified', open, unverified, neither, { kind: 'create', email: verified.email }],
    ['nobody, creation open, the provider silent', open, silent, neither, { kind: 'create', email: verified.email }],
    ['nobody, creation closed', linking, verified, neither, 'OAUTH_REGISTRATION_DISABLED'],
  ])('%s', (...row) => {
    const [title, settings, profile, found, expected] = row
    expect(decided(title, settings, profile, found)).toEqual(expected)
  })
})
