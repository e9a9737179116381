import { describe, expect, test } from 'vitest'
import { parseFilters } from '../../src/admin/list-users'
import { AppError } from '../../src/core/errors'
import { addUserFields } from './people'

/** A query string's pairs -> what the store is asked, or the code and key of the refusal. */
function parse(query: string, columns: ReadonlySet<string> = addUserFields): unknown {
  try {
    return parseFilters([...new URLSearchParams(query)], columns)
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return `${error.code} ${String(error.details['filter'])}`
  }
}

const at = (text: string) => new Date(text)
const unknown = (key: string) => `UNKNOWN_FILTER_KEY ${key}`
const invalid = (key: string) => `INVALID_FILTER_VALUE ${key}`
const noon = '2026-03-29T12:00:00.000Z'

const accepted: [query: string, field: string, operator: string, value: unknown][] = [
  ['id=42', 'id', 'eq', '42'],
  ['id__ne=42', 'id', 'ne', '42'],
  ['id__in=1,2', 'id', 'in', ['1', '2']],
  ['id__not_in=1', 'id', 'not_in', ['1']],
  ['email=ana@example.test', 'email', 'eq', 'ana@example.test'],
  ['email__in=ana@example.test', 'email', 'in', ['ana@example.test']], // a scalar is a list of one
  ['email__gt=a', 'email', 'gt', 'a'],
  ['email__gte=a', 'email', 'gte', 'a'],
  ['email__lt=a', 'email', 'lt', 'a'],
  ['email__lte=a', 'email', 'lte', 'a'],
  ['email__between=a,b', 'email', 'between', ['a', 'b']],
  ['email__contains=%25_', 'email', 'contains', '%_'],
  ['email=Ana@Example.TEST', 'email', 'eq', 'ana@example.test'],
  ['email__in=ANA@example.test,bo@example.test', 'email', 'in', ['ana@example.test', 'bo@example.test']],
  ['email__startswith=ANA', 'email', 'startswith', 'ana'],
  ['email__icontains=A', 'email', 'icontains', 'a'],
  ['email__startswith=a', 'email', 'startswith', 'a'],
  ['email__endswith=a,b', 'email', 'endswith', 'a,b'], // no list
  ['name=', 'name', 'eq', ''],
  ['name__not_in=a,', 'name', 'not_in', ['a', '']],
  ['name__isnull=true', 'name', 'isnull', true],
  ['name__contains=null', 'name', 'contains', 'null'],
  ['is_active=true', 'isActive', 'eq', true],
  ['is_admin__ne=false', 'isAdmin', 'ne', false],
  ['is_admin__in=true,false', 'isAdmin', 'in', [true, false]],
  [`created_at=${noon}`, 'createdAt', 'eq', at(noon)],
  ['created_at__gte=2026-03-29', 'createdAt', 'gte', at('2026-03-29T00:00:00Z')],
  ['updated_at__lt=2026-03-29T12:00Z', 'updatedAt', 'lt', at(noon)],
  ['last_login_at__gt=2026-03-29T14:00:00%2B02:00', 'lastLoginAt', 'gt', at(noon)],
  [`email_verified_at__between=2026-03-29,${noon}`, 'emailVerifiedAt', 'between', [at('2026-03-29'), at(noon)]],
  ['activated_at__isnull=false', 'activatedAt', 'isnull', false],
  ['mfa_enabled=true', 'totpEnabledAt', 'isnull', false],
  ['mfa_enabled=false', 'totpEnabledAt', 'isnull', true],
  ['mfa_enabled__ne=true', 'totpEnabledAt', 'isnull', true],
]

const secrets = ['hashed_password', 'totp_secret', 'totp_enabled_at', 'totp_last_step', 'password_set_at', 'totpSecret', 'hashedPassword']
const strangers = ['__proto__', 'constructor', 'constructor__eq', 'toString', 'hasOwnProperty__in', '__proto____contains', 'prototype', '']
const misspelt = [
  'Email',
  'email ',
  'email[]',
  'email[in]',
  'email__',
  'email__eq',
  'email__IN',
  'email__ne__ne',
  'email__regex',
  'email.ne',
]
const meaningless = ['id__gt', 'id__contains', 'is_active__between', 'is_active__contains', 'created_at__icontains', 'mfa_enabled__isnull']
const writable = ['isActive', 'created_at; drop table auth_users', 'users.email', 'order_by', 'sort', 'limit__ne', 'cursor__eq']

const refusedValues: string[] = [
  ...['is_active=1', 'is_active=', 'is_active=TRUE', 'is_active__in=true,', 'is_active__isnull=null', 'mfa_enabled=yes'],
  ...['name__isnull=', 'id=', 'id__in=1,,2', `id=${'x'.repeat(65)}`, 'id=a%00b', 'email=%00', `name__contains=${'x'.repeat(321)}`],
  ...['email__between=a', 'email__between=a,b,c', 'email__between=', 'created_at__between=2026-01-01', 'created_at__between=,'],
  ...['created_at=', 'created_at=yesterday', 'created_at=0', 'created_at=1767225600000', 'created_at=2026', 'created_at=2026-02-30'],
  ...['created_at=2026-13-01', 'created_at=2026-03-29T12:00:00', 'created_at=2026-03-29T25:00Z', 'created_at=2026-03-29T14:00:00+02:00'],
  ...['created_at=0000-01-01', 'created_at=9999-12-31T23:59-14:00', 'created_at=2026-03-29T12:00:00.0001Z', 'created_at__in=2026-01-01,x'],
  ...[`id__in=${Array.from({ length: 101 }, (_, index) => index).join()}`, `email__in=${'a@example.test,'.repeat(300)}`],
]

describe('S31: the grammar of list filters', () => {
  test.each(accepted)('%s', (query, field, operator, value) => {
    expect(parse(query)).toEqual([{ field, operator, value }])
  })

  test('knows no key but the declared columns with operators that mean something, and no secret', () => {
    const keys = [...secrets, ...secrets.map((key) => `${key}__startswith`), ...strangers, ...misspelt, ...meaningless, ...writable]
    for (const key of keys) expect(parse(`${encodeURIComponent(key)}=x`), key).toBe(unknown(key))
    expect(keys.length).toBeGreaterThan(40)
  })

  test('a column that the users table lacks is unknown, also for the second factor', () => {
    const columns = new Set(['id', 'email'])
    expect(parse('name=x', columns)).toBe(unknown('name'))
    expect(parse('mfa_enabled=true', columns)).toBe(unknown('mfa_enabled'))
    expect(parse('email=x', columns)).toEqual([{ field: 'email', operator: 'eq', value: 'x' }])
  })

  test('a value of another form is refused, and never repeated in the error', () => {
    for (const query of refusedValues) expect(parse(query), query).toBe(invalid(query.slice(0, query.indexOf('='))))
    const nobodysText = [
      ['email', '\ud800'],
      ['email', ['a']],
      ['email', { ne: 'a' }],
      ['email', 7],
      ['email', null],
    ] as const
    for (const entry of nobodysText) expect(() => parseFilters([entry], addUserFields)).toThrow('The filter value is not valid.')
  })

  test('several filters hold together; a key stands once', () => {
    expect(parse('email__gt=a&email__lt=b&is_active=true')).toHaveLength(3)
    expect(parse('email=a&is_active=true&email=b')).toBe(invalid('email'))
    expect(parse('email=a&email=a')).toBe(invalid('email'))
    expect(parse('')).toEqual([])
  })
})
