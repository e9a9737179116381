import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { ServiceUnavailableError } from '../../src/core/errors'
import { describeError } from '../../src/core/logger'
import { DuplicateRecordError } from '../../src/store/auth-store'
import { isConflict, translateDriverError } from '../../src/store/knex/driver-errors'

const SECRET = 'canary-secret'

/** As knex throws it: the statement with its values in front. */
function driverError(code: string | undefined, message = 'failed', name = 'Error'): Error {
  const error = new Error(`insert into "auth_users" ("email") values ('${SECRET}') - ${message}`)
  error.name = name
  return Object.assign(error, code === undefined ? {} : { code }, { detail: `Key (email)=(${SECRET})`, parameters: [SECRET] })
}

describe('translateDriverError', () => {
  test.each(['23505', 'ER_DUP_ENTRY', 'SQLITE_CONSTRAINT_UNIQUE', 'SQLITE_CONSTRAINT_PRIMARYKEY'])('%s is a duplicate', (code) => {
    expect(translateDriverError('users.insert', driverError(code))).toBeInstanceOf(DuplicateRecordError)
  })

  test.each(['40001', '40P01', 'ER_LOCK_DEADLOCK', 'ER_CHECKREAD', 'SQLITE_BUSY_SNAPSHOT', 'SQLITE_LOCKED_SHAREDCACHE'])(
    '%s is a conflict: worth another run, then 503',
    (code) => {
      const error = translateDriverError('users.update', driverError(code))
      expect(error).toBeInstanceOf(ServiceUnavailableError)
      expect(isConflict(error)).toBe(true)
    },
  )

  test.each([
    'ECONNREFUSED',
    'ECONNRESET',
    'EPIPE',
    'ETIMEDOUT',
    'ENOTFOUND',
    'EAI_AGAIN',
    '08006',
    '57P01',
    '57P03',
    '53300',
    '53100',
    '25006',
    '42501',
    'ER_CON_COUNT_ERROR',
    'ER_ACCESS_DENIED_ERROR',
    'ER_DBACCESS_DENIED_ERROR',
    'ER_TABLEACCESS_DENIED_ERROR',
    'ER_COLUMNACCESS_DENIED_ERROR',
    'ER_SERVER_SHUTDOWN',
    'ER_QUERY_INTERRUPTED',
    'ER_OPTION_PREVENTS_STATEMENT',
    'PROTOCOL_CONNECTION_LOST',
    'SQLITE_CANTOPEN',
    'SQLITE_FULL',
    'SQLITE_IOERR_WRITE',
    '55P03',
    'ER_LOCK_WAIT_TIMEOUT',
    'SQLITE_BUSY',
    'SQLITE_BUSY_RECOVERY',
    'SQLITE_BUSY_TIMEOUT',
  ])('%s is an outage: 503 without another run', (code) => {
    const error = translateDriverError('users.find', driverError(code))
    expect(error).toBeInstanceOf(ServiceUnavailableError)
    expect(isConflict(error)).toBe(false)
  })

  test.each([
    'Connection terminated unexpectedly',
    'Connection terminated',
    'timeout exceeded when trying to connect',
    'Unable to acquire a connection',
    "Can't add new command when connection is in closed state",
  ])('"%s" without a code is an outage', (message) => {
    expect(translateDriverError('users.find', driverError(undefined, message))).toBeInstanceOf(ServiceUnavailableError)
  })

  test('a full pool is an outage', () => {
    expect(translateDriverError('users.find', driverError(undefined, 'Timeout', 'KnexTimeoutError'))).toBeInstanceOf(
      ServiceUnavailableError,
    )
  })

  test.each(['23503', '23502', '22001', 'SQLITE_CONSTRAINT_NOTNULL', 'ER_NO_REFERENCED_ROW_2', 'ER_NET_PACKET_TOO_LARGE', undefined])(
    '%s is a plain error: the verb and the code',
    (code) => {
      const error = translateDriverError('users.insert', driverError(code))
      expect(error).not.toBeInstanceOf(ServiceUnavailableError)
      expect(error).not.toBeInstanceOf(DuplicateRecordError)
      expect(error.message).toBe(`The database failed at users.insert (${code ?? 'Error'})`)
      expect(error.cause).toBeUndefined()
    },
  )

  test('a value that ends like a lost connection is still only a value', () => {
    const error = Object.assign(new Error('update x set name = ? - unexpected text: Connection terminated'), { code: '42601' })
    expect(translateDriverError('users.update', error)).not.toBeInstanceOf(ServiceUnavailableError)
  })

  test.each(['23505', '40001', '57P01', '23503', SECRET, undefined])('nothing bound gets out (%s)', (code) => {
    const error = translateDriverError('users.insert', driverError(code, 'failed', code === SECRET ? `${SECRET} ${SECRET}` : 'error'))
    const presented = [
      inspect(error, { depth: 10, showHidden: true }),
      error.stack,
      JSON.stringify(error),
      JSON.stringify(describeError(error)),
    ]
    for (const text of presented) expect(text).not.toContain(SECRET)
  })

  test('a server error without a name is known by its number: a killed connection and a statement timeout are outages', () => {
    const numbered = (errno: number) => Object.assign(driverError(undefined), { code: undefined, errno })
    for (const errno of [1927, 1969]) expect(translateDriverError('users.find', numbered(errno))).toBeInstanceOf(ServiceUnavailableError)
    expect(translateDriverError('users.find', numbered(4025)).message).toBe('The database failed at users.find (ERRNO_4025)')
  })

  test('what is not an error has no code', () => {
    expect(translateDriverError('users.find', SECRET).message).toBe('The database failed at users.find (unknown)')
  })

  test('errors of ours pass as they are', () => {
    for (const error of [new DuplicateRecordError('x'), new ServiceUnavailableError()]) expect(translateDriverError('v', error)).toBe(error)
    expect(isConflict(new ServiceUnavailableError())).toBe(false)
  })
})
