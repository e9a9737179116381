import { describe, expect, test } from 'vitest'
import { OAuthTokenAudienceMismatchError } from '../../src/core/errors'
import { requireAudience } from '../../src/providers/token-verifier'

/** `ours`, and the id of our mobile app among the extra audiences. */
const accepted = ['ours', 'ours-ios']

describe('R-051, S23, S24: azp, then client_id, then aud', () => {
  test.each([
    [{ azp: 'ours' }],
    [{ azp: 'ours-ios' }],
    [{ client_id: 'ours' }],
    [{ aud: 'ours' }],
    [{ aud: ['ours'] }],
    [{ aud: ['https://api.example', 'ours-ios'] }],
    // The application it was issued to, at whatever resource it may be shown.
    [{ azp: 'ours', aud: 'https://api.example' }],
    [{ azp: 'ours', aud: ['account', 'other'] }],
    [{ client_id: 'ours', aud: 'https://api.example' }],
    [{ azp: 'ours', client_id: 'ours-ios', aud: 'other' }],
    // JSON null is how some say nothing.
    [{ azp: null, client_id: null, aud: 'ours' }],
    [{ azp: null, client_id: 'ours', aud: null }],
  ])('%j was issued to this application', (claims) => {
    expect(() => requireAudience(claims, accepted)).not.toThrow()
  })

  test.each([
    // Another application's, whatever else is listed.
    [{ azp: 'other' }],
    [{ azp: 'other', aud: 'ours' }],
    [{ azp: 'other', aud: ['ours', 'other'] }],
    [{ azp: 'other', client_id: 'ours', aud: 'ours' }],
    [{ azp: 'ours', client_id: 'other', aud: 'ours' }],
    [{ client_id: 'other', aud: ['ours'] }],
    [{ aud: 'other' }],
    [{ aud: ['other', 'https://api.example'] }],
    // No application is named, or not in words.
    [{}],
    [{ aud: null }],
    [{ aud: [] }],
    [{ aud: '' }],
    [{ aud: {} }],
    [{ aud: [['ours']] }],
    [{ aud: { 0: 'ours', length: 1 } }],
    [{ azp: '', aud: 'ours' }],
    [{ azp: ['ours'], aud: 'ours' }],
    [{ azp: 7, aud: 'ours' }],
    [{ azp: true, aud: 'ours' }],
    [{ client_id: { toString: 'ours' }, aud: 'ours' }],
    [null],
    ['ours'],
    [['ours']],
  ])('%j is refused', (claims) => {
    expect(() => requireAudience(claims, accepted)).toThrow(OAuthTokenAudienceMismatchError)
  })

  test.each([['our'], ['s'], ['ours '], ['Ours'], ['ours,ours-ios'], ['ours-'], ['ou\u200brs'], ['__proto__']])(
    'R-007: %j is compared whole: no part of an id, and no other spelling, is that id',
    (id) => {
      for (const claims of [{ azp: id }, { client_id: id }, { aud: id }, { aud: [id] }]) {
        expect(() => requireAudience(claims, accepted)).toThrow(OAuthTokenAudienceMismatchError)
      }
    },
  )

  test('an empty id of ours is nobody', () => {
    for (const claims of [{ azp: '' }, { aud: '' }, { aud: [''] }, {}]) expect(() => requireAudience(claims, [''])).toThrow()
  })
})
