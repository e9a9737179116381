import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { mailbox } from '../../src/testing'
import { type Mounted, mount } from '../support/app'
import { databases, type OpenDatabase } from '../support/databases'
import { appFolder, doorward, personWho, type RunOptions } from './run-command'

describe.each(await databases())('doorward users, on $name', ({ open }) => {
  let db: OpenDatabase
  let mounted: Mounted
  let folder: string
  const inbox = mailbox()
  const events: [string, object][] = []

  beforeAll(async () => {
    db = await open()
    mounted = await mount({
      knex: db.knex,
      settings: { publicUrl: 'https://app.example.test', mfaEnabled: true, mfaIssuer: 'Example', backendLinks: true },
      options: { mailer: inbox },
    })
    folder = appFolder(mounted.auth)
    for (const name of [
      'signup',
      'account.deactivated',
      'account.deleted',
      'activation',
      'admin.granted',
      'admin.revoked',
      'session.revoked',
    ] as const)
      mounted.auth.events.on(name, (payload) => events.push([name, payload]))
  })

  afterAll(async () => {
    await mounted.close()
    await db.close()
  })

  const here = (line: string, options: RunOptions = {}) => doorward(line, { folder, ...options })
  const json = async (line: string, options: RunOptions = {}) => {
    const { out, exitCode } = await here(`${line} --json`, options)
    return { exitCode, body: JSON.parse(out) }
  }

  test('create makes an active account whose address is unproven, with a password from standard input', async () => {
    const created = await json('users create Ada@Example.com --name Ada --password-stdin', { stdin: 'a long enough pass phrase\n' })

    expect(created).toMatchObject({
      exitCode: 0,
      body: {
        user: { email: 'ada@example.com', name: 'Ada', is_active: true, is_admin: false, email_verified_at: null },
        set_password_url: null,
      },
    })
    const login = await mounted.auth.service.logIn({ email: 'ada@example.com', password: 'a long enough pass phrase' })
    expect(login.userId).toBe(created.body.user.id)
    expect(events).toContainEqual(['signup', { userId: created.body.user.id, by: 'command' }])
  })

  test('without a password it prints a link to set one, which is mailed too', async () => {
    const { body } = await json('users create grace@example.com --admin --verified')

    expect(body.user).toMatchObject({ is_admin: true, email_verified_at: expect.any(String) })
    expect((await inbox.next({ kind: 'password_reset', to: 'grace@example.com' })).text).toContain(body.set_password_url)
    await mounted.auth.service.resetPassword({ token: body.set_password_url.split('/').pop(), newPassword: 'chosen by Grace herself' })
    expect(await mounted.auth.service.logIn({ email: 'grace@example.com', password: 'chosen by Grace herself' })).toMatchObject({
      userId: body.user.id,
    })
    expect(events).toContainEqual(['admin.granted', { userId: body.user.id, actorId: null }])
  })

  test('on a terminal the password is asked for twice', async () => {
    const same = personWho('typed on a terminal', 'typed on a terminal')
    expect((await here('users create typed@example.com', { terminal: same })).exitCode).toBe(0)
    expect(same.questions).toHaveLength(2)
    expect(await mounted.auth.service.logIn({ email: 'typed@example.com', password: 'typed on a terminal' })).toMatchObject({
      userId: expect.any(String),
    })

    const other = await here('users create other@example.com', { terminal: personWho('typed on a terminal', 'typed otherwise') })
    expect(other).toMatchObject({ exitCode: 1, out: '', err: expect.stringContaining('differ') })
    expect((await here('users show other@example.com')).exitCode).toBe(1)
  })

  test('the policy and a taken address refuse with exit 1, and no password is repeated', async () => {
    const weak = await json('users create weak@example.com --password-stdin', { stdin: 'hush' })
    expect(weak).toMatchObject({
      exitCode: 1,
      body: { error: { code: 'VALIDATION_ERROR', message: 'The password is too short: at least 12 characters.' } },
    })
    expect(JSON.stringify(weak)).not.toContain('hush')

    expect(await json('users create ada@example.com')).toMatchObject({ exitCode: 1, body: { error: { code: 'EMAIL_TAKEN' } } })
  })

  test('show prints a name with its control characters written out, so that it neither moves the cursor nor looks like a row', async () => {
    expect((await here('users create sly@example.com', { terminal: personWho('', '') })).exitCode).toBe(0)
    const [user] = (await json('users list --filter email=sly@example.com')).body.items as { id: string }[]
    await db.knex('auth_users').where({ id: user?.id }).update({ name: 'Sly\u001b[2J\nis_admin  true' })
    expect((await here('users show sly@example.com')).out).toContain('name  Sly\\u{1b}[2J\\u{a}is_admin  true\n')
  })

  test('list and the question before a change write control characters of an address out, too', async () => {
    const { id } = (await json('users create tricky@example.com')).body.user
    await db.knex('auth_users').where({ id }).update({ email: 'tricky\u009b2K\u202e@example.com' }) // as an import of the host's own may
    const person = personWho('n')

    expect((await here('users list --limit 100')).out).toContain(`${id}  tricky\\u{9b}2K\\u{202e}@example.com\n`)
    await here(`users deactivate ${id}`, { terminal: person })
    expect(person.questions).toEqual(['Deactivate tricky\\u{9b}2K\\u{202e}@example.com? (y/N) '])
    await db.knex('auth_users').where({ id }).delete()
  })

  test('show and list find accounts by id, by address however it is written, and by filters, without a hash', async () => {
    const byAddress = await json('users show ADA@example.com')
    const byId = await json(`users show ${byAddress.body.id}`)
    expect(byId).toEqual(byAddress)
    expect(JSON.stringify(byId)).not.toMatch(/hash|secret/)

    const admins = await json('users list --filter is_admin=true')
    expect(admins.body).toMatchObject({ items: [{ email: 'grace@example.com' }], next_cursor: null })
    const first = await json('users list --limit 1')
    const second = await json(`users list --limit 1 --cursor ${first.body.next_cursor}`)
    expect(new Set([first, second].map(({ body }) => body.items[0].id)).size).toBe(2)
    expect((await here('users list --filter password=x')).exitCode).toBe(1)
    expect((await here('users show nobody@example.com')).exitCode).toBe(1)
  })

  test('what takes something away asks, needs --yes without a terminal, and does nothing on a no', async () => {
    expect(await here('users deactivate ada@example.com')).toMatchObject({ exitCode: 2, err: expect.stringContaining('--yes') })
    expect((await here('users deactivate ada@example.com', { terminal: personWho('n') })).exitCode).toBe(1)
    expect((await json('users show ada@example.com')).body.is_active).toBe(true)

    const sure = personWho('y')
    expect((await here('users deactivate ada@example.com', { terminal: sure })).exitCode).toBe(0)
    expect(sure.questions).toEqual([expect.stringContaining('ada@example.com')])
    expect((await json('users show ada@example.com')).body.is_active).toBe(false)
  })

  test('each change is the one of the admin routes, with its events and notices and no actor', async () => {
    const { body: ada } = await json('users activate ada@example.com')
    expect(ada.is_active).toBe(true)
    expect((await json('users admin ada@example.com')).body.is_admin).toBe(true)
    expect(await inbox.next({ kind: 'notice', to: 'ada@example.com' })).toBeTruthy()
    expect((await json('users admin ada@example.com --revoke --yes')).body.is_admin).toBe(false)
    await mounted.auth.service.logIn({ email: 'ada@example.com', password: 'a long enough pass phrase' })
    expect((await here('users revoke-sessions ada@example.com --yes')).exitCode).toBe(0)
    expect(await mounted.auth.service.listSessions(ada.id)).toEqual([])
    expect((await here('users reset-mfa ada@example.com --yes')).exitCode).toBe(0)
    expect((await here('users reset-mfa ada@example.com --passkeys --yes')).exitCode).toBe(0)
    expect((await here('users deactivate ada@example.com --passkeys --yes')).exitCode).toBe(2)
    const withoutTask = await here('users expire-password ada@example.com --keep-sessions --yes')
    expect([withoutTask.exitCode, withoutTask.err]).toEqual([1, expect.stringContaining('newPasswordTask()')])

    const { id: userId } = ada
    expect(events).toEqual(
      expect.arrayContaining([
        ['account.deactivated', { userId }],
        ['activation', { userId }],
        ['admin.granted', { userId, actorId: null }],
        ['admin.revoked', { userId, actorId: null }],
        ['session.revoked', { userId, count: expect.any(Number) }],
      ]),
    )
  })

  test('approve and decline are for accounts that wait; delete asks, shows the account for the last time, and it is gone', async () => {
    await here('users create leaving@example.com')
    for (const change of ['approve leaving@example.com', 'decline leaving@example.com --yes']) {
      const { exitCode, err } = await here(`users ${change}`)
      expect([exitCode, err]).toEqual([1, expect.stringContaining('somebody else changed it')])
    }
    expect((await here('users delete leaving@example.com')).exitCode).toBe(2)
    const { id, email } = (await json('users delete leaving@example.com --yes')).body
    expect(email).toBe('leaving@example.com')
    expect((await here('users show leaving@example.com')).exitCode).toBe(1)
    expect(events).toEqual(expect.arrayContaining([['account.deleted', { userId: id }]]))
  })

  test('purge prints how many rows of each table went, and 0 where none did', async () => {
    mounted.clock.advance(400 * 86_400_000)
    const { id } = (await json('users show ada@example.com')).body
    await db.knex('auth_user_tokens').insert({
      id: crypto.randomUUID(),
      user_id: id,
      token_hash: 'a'.repeat(64),
      purpose: 'PASSWORD_RESET',
      expires_at: db.knex.client.config.client === 'better-sqlite3' ? 1_000_000 : new Date(1_000_000_000_000),
      created_at: db.knex.client.config.client === 'better-sqlite3' ? 1_000_000 : new Date(1_000_000_000_000),
    })
    const first = await json('purge')
    const second = await json('purge')

    expect(first.body.userTokens).toBeGreaterThan(0)
    expect(second).toMatchObject({ exitCode: 0, body: { userTokens: 0 } })
    expect((await here('purge')).out).toContain('userTokens  0\n')
  })

  test.each([
    'users',
    'users other',
    'users show',
    'users show a b',
    'users list more',
    'users list --filter x',
    'purge more',
    'users create',
  ])('wrong usage is exit 2: %s', async (line) => {
    expect(await here(line)).toMatchObject({ exitCode: 2, out: '' })
  })

  test.each(['users show ada@example.com --yes', 'users create a@example.com --revoke', 'users activate a --name x', 'purge --filter a=b'])(
    'a flag of another command is exit 2: %s',
    async (line) => {
      expect(await here(line)).toMatchObject({ exitCode: 2, err: expect.stringContaining('takes no --') })
    },
  )
})
