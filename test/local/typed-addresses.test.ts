import { afterEach, describe, expect, test } from 'vitest'
import { type Mounted, mount } from '../support/app'
import { databases, type OpenDatabase } from '../support/databases'
import { linkTemplates, mailbox } from '../support/mailbox'
import { password, post } from './people'

/** What people type into the field of an address: each is a failed login on every database, and none is a failure of it. */
const typed = [
  'ana@exämple.test',
  'аня@пример.test',
  'ana\u{1f600}@example.test',
  'ana\0@example.test',
  'ana\ud800@example.test',
  "' or 1=1 --",
  '%',
  '\\',
  'x'.repeat(320),
]

describe.each(await databases())('what is no address, on $name', (database) => {
  let opened: OpenDatabase | undefined
  let mounted: Mounted | undefined
  afterEach(async () => {
    await mounted?.close()
    await opened?.close()
  })

  test('is a failed login and an ordinary request for a link', async () => {
    opened = await database.open()
    const throttle = { login: false, links: false, routes: false } as const
    mounted = await mount({ knex: opened.knex, settings: linkTemplates, options: { mailer: mailbox(), throttle } })
    // As a table of the host's own may be; other databases have one character set for all.
    if (database.name === 'mariadb')
      await opened.knex.raw('alter table auth_users modify email varchar(320) character set ascii collate ascii_bin not null')
    for (const email of typed) {
      expect((await post(mounted, '/login', { email, password })).status, email).toBe(401)
      expect((await post(mounted, '/password-reset/request', { email })).status, email).toBe(202)
    }
    expect(mounted.logs.entries.filter(({ level }) => level === 'error')).toEqual([])
  })
})
