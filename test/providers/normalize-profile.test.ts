import { describe, expect, test } from 'vitest'
import { OAuthError } from '../../src/core/errors'
import { normalizeProfile } from '../../src/providers/normalize-profile'

const normalized = (members: object) => normalizeProfile('corp', { subject: 's', ...members })

describe('the subject', () => {
  test.each([
    ['abc', 'abc'],
    ['AbC ', 'AbC '],
    ['x'.repeat(255), 'x'.repeat(255)],
    [583231, '583231'],
    [0, '0'],
  ])('%j is kept as the string %j', (given, kept) => {
    expect(normalized({ subject: given }).subject).toBe(kept)
  })

  test.each([
    [undefined],
    [null],
    [''],
    [{}],
    [[]],
    [['abc']],
    [true],
    [Number.NaN],
    [1.5],
    [9007199254740992],
    [1e21],
    ['x'.repeat(256)],
    ['a\u0000b'],
    ['a\nb'],
    ['a\ud800b'],
  ])('%j is 502 OAUTH_ERROR', (subject) => {
    expect(() => normalized({ subject })).toThrow(OAuthError)
  })

  test.each([[null], [undefined], ['text'], [[]], [7]])('a profile that is %j has none', (profile) => {
    expect(() => normalizeProfile('corp', profile)).toThrow(OAuthError)
  })
})

test('the provider is the one asked for, whatever the profile says', () => {
  expect(normalized({ provider: 'other' }).provider).toBe('corp')
})

test.each([
  [true, true],
  ['true', true],
  [false, false],
  ['false', false],
  [1, null],
  [0, null],
  ['yes', null],
  ['TRUE', null],
  ['true ', null],
  [[true], null],
  [{}, null],
  [null, null],
  [undefined, null],
])('email_verified %j counts as %j', (given, counted) => {
  expect(normalized({ emailVerified: given }).emailVerified).toBe(counted)
})

test.each([
  ['Ana@Example.com', 'Ana@Example.com'],
  ['not an address', 'not an address'],
  [['a@b.example'], null],
  [{ toString: 'a@b.example' }, null],
  [7, null],
  [undefined, null],
])('the email %j passes as %j: whether it counts is decided by the one email rule', (given, passed) => {
  expect(normalized({ email: given }).email).toBe(passed)
})

test.each([
  ['Ana Souza', 'Ana Souza'],
  ['  Ana \u202e\u0007Souza\u2066\n ', 'Ana Souza'],
  ['\u200f\u061c', null],
  ['   ', null],
  ['', null],
  ['👩‍👧 Ana', '👩‍👧 Ana'],
  ['a\ud800', 'a'],
  ['é'.repeat(300), 'é'.repeat(200)],
  ['😀'.repeat(300), '😀'.repeat(200)],
  [{}, null],
  [7, null],
])('the name %j is shown as %j', (given, presented) => {
  expect(normalized({ name: given }).name).toBe(presented)
})

const longest = `https://cdn.example.com/${'a'.repeat(1000)}`
test.each([
  ['https://cdn.example.com/a.png?s=96', 'https://cdn.example.com/a.png?s=96'],
  [longest, longest],
  [`${longest}a`, null],
  ['http://cdn.example.com/a.png', null],
  ['javascript:alert(1)', null],
  ['data:image/png;base64,AA', null],
  ['//cdn.example.com/a.png', null],
  ['https://user:password@cdn.example.com/', null],
  ['https://cdn.example.com/"onerror="x', 'https://cdn.example.com/%22onerror=%22x'],
  [`https://cdn.example.com/${'"'.repeat(500)}`, null],
  [['https://cdn.example.com/'], null],
  [null, null],
])('the picture %j is kept as %j', (given, kept) => {
  expect(longest.length).toBe(1024)
  expect(normalized({ picture: given }).picture).toBe(kept)
})

test.each([[null], ['text'], [[]]])('a raw payload that is %j is an empty object', (raw) => {
  expect(normalized({ raw }).raw).toEqual({})
})
