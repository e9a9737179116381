import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type AuthStore,
  argon2idHasher,
  bcryptHasher,
  createAuthRouter,
  createAuthTables,
  createKnexStore,
  djangoPbkdf2Reader,
  errors,
  type HostTables,
  type PasswordHasher,
  rehashingHasher,
} from '../../src'
import { legacyHashes, microsoft } from '../passwords/legacy-hashes'
import { type Mounted, mount, testSecret } from '../support/app'
import { databases, type OpenDatabase } from '../support/databases'
import { logTap } from '../support/log-tap'
import { appFolder, doorward, type RunOptions } from './run-command'

const password = 'a long enough pass phrase'
const django = 'pbkdf2_sha256$1000$c2FsdHNhbHQ$AczGnzyQbBo0FuxgOeNQ7amcq4IlDvS6av2fGi/ScQY='

describe.each(await databases())('doorward users import, on $name', ({ open }) => {
  let db: OpenDatabase
  let mounted: Mounted
  let folder: string
  const events: [string, object][] = []

  beforeAll(async () => {
    db = await open()
    mounted = await mount({
      knex: db.knex,
      options: { passwordHasher: rehashingHasher({ current: argon2idHasher(), legacy: [djangoPbkdf2Reader()] }) },
    })
    folder = appFolder(mounted.auth)
    for (const name of ['signup', 'users.imported', 'admin.granted'] as const)
      mounted.auth.events.on(name, (payload) => events.push([name, payload]))
  })

  afterAll(async () => {
    await mounted.close()
    await db.close()
  })

  const imported = async (file: string, text: string, flags = '', options: RunOptions = {}) => {
    writeFileSync(join(folder, file), text)
    const { out, exitCode } = await doorward(`users import ${file} --json ${flags}`, { folder, ...options })
    return { exitCode, body: JSON.parse(out) }
  }
  const presented = async (who: string) => JSON.parse((await doorward(`users show ${who} --json`, { folder })).out)
  const rules = ({ body }: { body: { refused: { line: number; rule: string }[] } }) => body.refused.map(({ line, rule }) => [line, rule])

  test('JSON lines become accounts that sign in with the password they had, and whose hash is replaced then', async () => {
    const bcrypt = await bcryptHasher({ cost: 10 }).hash(password)
    const lines = [
      { email: 'Ada@Example.com', password_hash: bcrypt, name: 'Ada', email_verified: true, created_at: '2019-05-04T03:02:01.000Z' },
      { email: 'grace@example.com', is_active: false, created_at: 1_500_000_000 },
    ]
    const answer = await imported('people.jsonl', `\uFEFF${lines.map((line) => JSON.stringify(line)).join('\n')}\n\n`)

    expect(answer).toEqual({ exitCode: 0, body: { imported: 2, skipped: 0, refused: [] } })
    expect(await presented('ada@example.com')).toMatchObject({
      name: 'Ada',
      is_active: true,
      is_admin: false,
      created_at: '2019-05-04T03:02:01.000Z',
      email_verified_at: '2019-05-04T03:02:01.000Z',
    })
    expect(await presented('grace@example.com')).toMatchObject({
      is_active: false,
      created_at: '2017-07-14T02:40:00.000Z',
      email_verified_at: null,
    })
    expect(await mounted.auth.service.logIn({ email: 'ada@example.com', password })).toMatchObject({ userId: expect.any(String) })
    const [row] = await db.knex('auth_users').where({ email: 'ada@example.com' }).select('hashed_password')
    expect(row.hashed_password).toContain('$argon2id$')
    expect(events).toEqual([['users.imported', { count: 2, admins: 0 }]])
  })

  test('an address that exists stays as it is, also one that is in the file twice; the same file again changes nothing', async () => {
    const text =
      '{"email":"ADA@example.com","name":"Other"}\n{"email":"twice@example.com","name":"First"}\n{"email":"Twice@example.com","name":"Second"}\n'

    expect((await imported('again.ndjson', text)).body).toEqual({ imported: 1, skipped: 2, refused: [] })
    expect(await presented('ada@example.com')).toMatchObject({ name: 'Ada' })
    expect(await presented('twice@example.com')).toMatchObject({ name: 'First' })
    expect((await imported('again.ndjson', text)).body).toEqual({ imported: 0, skipped: 3, refused: [] })
  })

  test('each row that breaks a rule is refused by its line and rule, never with its hash, and the others are in', async () => {
    const rows = [
      { email: 'no address' },
      { name: 'nobody' },
      { email: 'r1@example.com', password_hash: 'hunter2hunter2' },
      { email: 'r2@example.com', password_hash: '$2x$10$abcdefghijklmnopqrstuuBd' },
      { email: 'r3@example.com', name: 'x'.repeat(121) },
      { email: 'r4@example.com', is_active: 'perhaps' },
      { email: 'r5@example.com', email_verified: 'perhaps' },
      { email: 'r6@example.com', created_at: 'yesterday' },
      { email: 'r7@example.com', created_at: '2999-01-01' },
      { email: 'r8@example.com', shoe_size: 44 },
      { email: 'r9@example.com', is_admin: true },
      { email: 'r10@example.com', name: 'a\0b' },
      { email: 'r11@example.com', is_active: { toString: 1 } },
      { email: 'fine@example.com', password_hash: django },
    ]
    const answer = await imported('mixed.jsonl', `${rows.map((row) => JSON.stringify(row)).join('\r\n')}\r\nno json\r\n[1]\r\n`)

    expect(answer).toMatchObject({ exitCode: 1, body: { imported: 1, skipped: 0 } })
    expect(rules(answer)).toEqual([
      [1, 'email'],
      [2, 'email'],
      [3, 'password_hash'],
      [4, 'password_hash'],
      [5, 'name'],
      [6, 'is_active'],
      [7, 'email_verified'],
      [8, 'created_at'],
      [9, 'created_at'],
      [10, 'unknown_field'],
      [11, 'unknown_field'],
      [12, 'name'],
      [13, 'is_active'],
      [15, 'syntax'],
      [16, 'syntax'],
    ])
    expect(JSON.stringify(answer)).not.toMatch(/hunter2|abcdefghijkl/)
    expect(JSON.stringify(answer)).toMatch(/shoe_size.*--ignore-unknown/)
    expect(JSON.stringify(answer)).toContain('--allow-admins')
  })

  test('CSV: quoted cells and line ends in them, an empty cell is no value, names of theirs by --map', async () => {
    const text = `Mail,encrypted_password,name,id,legacy\r\n"csv@example.com",${django},"Ada ""the first"", \r\nCountess",7,x\r\nempty@example.com,,,,\r\nshort@example.com,x\r\n"=sum@example.com",,'=1+1,,\r\n`
    const unknown = await imported('theirs.csv', text, '--map email=Mail,password_hash=encrypted_password')
    expect(unknown).toMatchObject({ exitCode: 1, body: { error: { code: 'UNKNOWN_FIELDS', message: expect.stringContaining('legacy') } } })
    expect(unknown.body.error.message).toContain('--keep-ids')

    const answer = await imported('theirs.csv', text, '--map email=Mail --map password_hash=encrypted_password --ignore-unknown')
    expect(answer.body).toMatchObject({ imported: 3, skipped: 0 })
    expect(rules(answer)).toEqual([[5, 'syntax']])
    expect(await presented('csv@example.com')).toMatchObject({ name: 'Ada "the first", \r\nCountess' })
    expect(await presented('empty@example.com')).toMatchObject({ name: null, is_active: true })
    expect(await presented('=sum@example.com')).toMatchObject({ name: '=1+1' })
  })

  test('a creation up to a day ahead counts as now, so that nothing of the account is dated in the future', async () => {
    const now = mounted.clock.now()
    const at = (hours: number) => new Date(now.getTime() + hours * 3_600_000).toISOString()
    const rows = [0.5, 23.9, 24.1].map((hours) => ({ email: `ahead${hours}@example.com`, created_at: at(hours), email_verified: true }))

    const answer = await imported('ahead.jsonl', rows.map((row) => JSON.stringify(row)).join('\n'))
    expect(rules(answer)).toEqual([[3, 'created_at']])
    for (const who of ['ahead0.5@example.com', 'ahead23.9@example.com'])
      expect(await presented(who)).toMatchObject({ created_at: now.toISOString(), email_verified_at: now.toISOString() })
  })

  test('the names of columns are printed without their control characters', async () => {
    const name = 'shoe\u009b2J\u202e'
    for (const [file, text] of [
      ['strange.csv', `email,${name}\na@example.com,1\n`],
      ['strange.jsonl', `{"email":"a@example.com","${name}":1}\n`],
      ['strange2.csv', `email,${name},${name}\na@example.com,1,2\n`],
    ] as const) {
      writeFileSync(join(folder, file), text)
      const { out, err } = await doorward(`users import ${file}`, { folder })
      expect(out + err).toContain('"shoe\\u{9b}2J\\u{202e}"')
      expect(out + err).not.toMatch(/[\u009b\u202e]/)
    }
  })

  test('a broken quote ends the import at its line, because nobody knows where the row ends; what came before is in', async () => {
    const answer = await imported('quotes.csv', 'email,name\nq1@example.com,fine\nq2@example.com,"a" b\nq3@example.com,fine\n')

    expect(answer).toMatchObject({
      exitCode: 1,
      body: { error: { code: 'BROKEN_CSV', message: expect.stringMatching(/line 3 .*1 were imported/) } },
    })
    expect(await presented('q1@example.com')).toMatchObject({ name: 'fine' })
    expect((await imported('open.csv', 'email\n"open@example.com\n')).body.error.code).toBe('BROKEN_CSV')
  })

  test('--dry-run says the same and writes nothing', async () => {
    const text = 'email,name\ndry@example.com,Dry\nada@example.com,\nDry@example.com,Again\nnobody,\nzero@example.com,a\0b\n'
    const dry = await imported('dry.csv', text, '--dry-run')
    const count = await db.knex('auth_users').count({ count: '*' })
    const wet = await imported('dry.csv', text)

    expect(dry).toEqual(wet)
    expect(dry.body).toMatchObject({ imported: 1, skipped: 2 })
    expect(rules(dry)).toEqual([
      [5, 'email'],
      [6, 'name'],
    ])
    expect(Number((await db.knex('auth_users').count({ count: '*' }))[0]?.count)).toBe(Number(count[0]?.count) + 1)
  })

  test('ids and administrators come in by their flags alone, and an id that is taken is refused', async () => {
    const id = crypto.randomUUID()
    const text = `${JSON.stringify({ email: 'chief@example.com', id, is_admin: true })}\n${JSON.stringify({ email: 'same@example.com', id })}\n${JSON.stringify({ email: 'seven@example.com', id: 7 })}\n`
    const answer = await imported('ids.jsonl', text, '--keep-ids --allow-admins')

    expect(answer.body).toMatchObject({ imported: 1, admins: [{ line: 1, id }] })
    expect(rules(answer)).toEqual([
      [2, 'duplicate'],
      [3, 'id'],
    ])
    expect(await presented('chief@example.com')).toMatchObject({ id, is_admin: true })
    expect(events.map(([name]) => name)).not.toContain('admin.granted')
    expect(events.map(([name]) => name)).not.toContain('signup')
  })

  test('--allow-admins names each administrator that came, counts them, and tells the observers how many', async () => {
    const rows = ['chief1@example.com,yes', 'staff1@example.com,no', 'chief2@example.com,1', 'chief@example.com,true', 'nobody,true']
    writeFileSync(join(folder, 'chiefs.csv'), `email,is_admin\n${rows.join('\n')}\n`)
    const named = ['line 2  admin', 'line 4  admin', expect.stringMatching(/^line 6 {2}email/)]
    const counts = ['imported  3', 'skipped  1', 'refused  1', 'admins  2', '']
    const run = async (flags: string) => (await doorward(`users import chiefs.csv --allow-admins ${flags}`, { folder })).out

    events.length = 0
    expect((await run('--dry-run')).split('\n')).toEqual([...named, ...counts])
    expect(events).toEqual([])
    expect((await run('')).split('\n')).toEqual([...named, ...counts])
    expect(events).toEqual([['users.imported', { count: 3, admins: 2 }]])
    expect(JSON.parse(await run('--json'))).toMatchObject({ imported: 0, admins: [] }) // they are there already
  })

  test('more rows than one statement takes; the file that stopped is run again, and what is in is skipped', async () => {
    const text = Array.from({ length: 1_203 }, (_, number) => `many${number}@example.com`).join('\n')
    await imported('half.csv', `email\n${text.split('\n').slice(0, 700).join('\n')}\n`)

    expect((await imported('many.csv', `email\n${text}`)).body).toEqual({ imported: 503, skipped: 700, refused: [] })
  })

  test('an address that is in the file twice counts where it is first, also several statements apart', async () => {
    const rows = Array.from({ length: 1_203 }, (_, number) => `far${number}@example.com,First`)
    const again = ['far0@example.com,Second', 'far900@example.com,Second']

    expect((await imported('far.csv', `email,name\n${[...rows, ...again].join('\n')}`)).body).toEqual({
      imported: 1_203,
      skipped: 2,
      refused: [],
    })
    for (const who of ['far0@example.com', 'far900@example.com']) expect(await presented(who)).toMatchObject({ name: 'First' })
  })

  test('without --json each refused row is told as it comes, and the counts at the end', async () => {
    const rows = Array.from({ length: 600 }, (_, number) => `told${number}@example.com`)
    rows[3] = 'nobody'
    rows[550] = 'nobody'
    writeFileSync(join(folder, 'told.csv'), `email\n${rows.join('\n')}\n`)
    writeFileSync(join(folder, 'cut.csv'), `email\n${rows.join('\n')}\n"a" b\n`)
    const refused = [5, 552].map((line) => expect.stringMatching(new RegExp(`^line ${line}  email  `)))

    const told = await doorward('users import told.csv', { folder })
    expect(told).toMatchObject({ exitCode: 1, err: '' })
    expect(told.out.split('\n')).toEqual([...refused, 'imported  598', 'skipped  0', 'refused  2', ''])

    const cut = await doorward('users import cut.csv', { folder })
    expect(cut.out.split('\n')).toEqual([...refused, ''])
    expect(cut.err).toContain('line 601; 0 were imported')
  })

  test('standard input by - and --format; a plain password, another encoding, a JSON array and an unknown ending are refused', async () => {
    const piped = await doorward('users import - --format jsonl --json', { folder, stdin: '{"email":"piped@example.com"}' })
    expect(JSON.parse(piped.out)).toMatchObject({ imported: 1 })

    expect((await imported('plain.jsonl', '{"email":"a@example.com","password":"hunter2"}', '--ignore-unknown')).body.error.code).toBe(
      'PLAIN_PASSWORD',
    )
    expect((await imported('array.jsonl', '[{"email":"a@example.com"}]')).body.error.code).toBe('NO_JSON_LINES')
    expect((await imported('twice.csv', 'email,name,name\na@example.com,b,c\n')).body.error.code).toBe('COLUMN_TWICE')
    writeFileSync(join(folder, 'latin.csv'), Buffer.from('email,name\nlatin@example.com,Jos\xe9\n', 'latin1'))
    expect((await doorward('users import latin.csv', { folder })).err).toContain('UTF-8')
    for (const line of ['people.txt', 'missing.csv', 'people.jsonl --map email', 'people.jsonl --map shoe=size', '', 'a b'])
      expect(await doorward(`users import ${line}`, { folder })).toMatchObject({ exitCode: 2, out: '' })
  })

  test('what users export writes, users import reads, in both forms; hashes come with --with-hashes alone', async () => {
    for (const [format, flags] of [
      ['jsonl', ''],
      ['csv', ''],
      ['jsonl', '--with-hashes'],
      ['csv', '--with-hashes'],
    ]) {
      const { out, exitCode } = await doorward(`users export --format ${format} ${flags}`, { folder })
      expect(exitCode).toBe(0)
      expect(out.includes('pbkdf2_sha256')).toBe(flags !== '')
      const other = await open()
      const into = await mount({
        knex: other.knex,
        options: { passwordHasher: rehashingHasher({ current: argon2idHasher(), legacy: [djangoPbkdf2Reader()] }) },
      })
      const there = appFolder(into.auth)
      writeFileSync(join(there, `all.${format}`), out)
      const answer = await doorward(`users import all.${format} --keep-ids --allow-admins --json`, { folder: there })
      expect(JSON.parse(answer.out)).toMatchObject({ skipped: 0, refused: [] })
      expect((await doorward(`users export --format ${format} ${flags}`, { folder: there })).out).toBe(out)
      await into.close()
      await other.close()
    }
  })

  test('a cell that a spreadsheet would take for a formula gets a quote, not with --raw; --json is one document; --filter narrows', async () => {
    expect((await doorward('users export --format csv', { folder })).out).toContain("'=1+1")
    expect((await doorward('users export --format csv --raw', { folder })).out).toContain(',=1+1')
    const { out } = await doorward('users export --json --filter email=ada@example.com', { folder })
    expect(JSON.parse(out)).toEqual({ users: [expect.objectContaining({ email: 'ada@example.com', name: 'Ada' })] })
    expect(JSON.parse((await doorward('users export --json', { folder })).out).users.length).toBeGreaterThan(1_200)
    expect((await doorward('users export --format xml', { folder })).exitCode).toBe(2)
    expect((await doorward('users export --filter shoe=1', { folder })).exitCode).toBe(1)
  })
})

test('46 a hash that the app does not read is refused with the name of its form and what to do; a hasher without `reads` takes all', async () => {
  const [database] = await databases()
  if (!database) throw new Error('no database')
  const db = await database.open({ memory: true })
  const advised = {
    [legacyHashes.django]: "Django's PBKDF2: add djangoPbkdf2Reader()",
    [legacyHashes.djangoSha1]: "Django's PBKDF2: add djangoPbkdf2Reader()",
    [legacyHashes.firebase]: "Firebase's scrypt: add firebaseScryptReader({ … })",
    [microsoft.hashes[0]]: 'ASP.NET Identity: add aspNetIdentityReader()',
    [legacyHashes.php.replace('$2y$', '$2x$')]: 'bcrypt of the form $2x$: doorward cannot read it, because a faulty program made the hash',
    [`bcrypt$${legacyHashes.php}`]: "Django's bcrypt: remove the first `bcrypt$`, because bcryptReader() reads the rest",
    'argon2$argon2id$v=19$m=102400,t=2,p=8$c2FsdHNhbHQ$aGFzaGhhc2g':
      "Django's argon2: remove the first `argon2`, because argon2idHasher() reads the rest",
    '$scrypt$ln=16,r=8,p=1$c2FsdHNhbHQ$aGFzaGhhc2g': 'scrypt: doorward has no reader for it: write a reader, { name, reads, verify }',
    '5f4dcc3b5aa765d61d8327deb882cf99': 'a bare digest: doorward cannot read it: import the account without a hash',
  }
  const rows = Object.keys(advised).map((password_hash, number) => JSON.stringify({ email: `h${number}@example.com`, password_hash }))
  const answerOf = async (passwordHasher: PasswordHasher) => {
    const mounted = await mount({ knex: db.knex, options: { passwordHasher } })
    const folder = appFolder(mounted.auth)
    writeFileSync(join(folder, 'theirs.jsonl'), rows.join('\n'))
    const { out, err, exitCode } = await doorward('users import theirs.jsonl --json', { folder })
    await mounted.close()
    return { exitCode, body: JSON.parse(out), err }
  }
  const { reads: _, ...withoutReads } = argon2idHasher()

  const refused = await answerOf(argon2idHasher())
  const messageOf = (advice: string) => `The hasher of this app does not read ${advice} (docs/passwords.md).`
  expect(refused).toMatchObject({
    exitCode: 1,
    body: { imported: 0, refused: Object.values(advised).map((advice) => ({ rule: 'password_hash', message: messageOf(advice) })) },
  })
  expect(refused.err).toBe('')
  expect(await answerOf(withoutReads)).toEqual({
    exitCode: 0,
    body: { imported: rows.length, skipped: 0, refused: [] },
    err: expect.stringContaining('has no reads(hash), so doorward cannot distinguish a hash from a plain password'),
  })
  await db.close()
})

test('where the database fails, nothing behind the failed batch is in, and the message says the last row that counts', async () => {
  const [database] = await databases()
  if (!database) throw new Error('no database')
  const db = await database.open()
  const store = createKnexStore({ knex: db.knex })
  let batches = 0
  const transaction: AuthStore['transaction'] = (work, options) => {
    batches += 1
    return batches === 2 ? Promise.reject(new errors.ServiceUnavailableError()) : store.transaction(work, options)
  }
  const mounted = await mount({ knex: db.knex, options: { store: { ...store, transaction } } })
  const folder = appFolder(mounted.auth)
  writeFileSync(
    join(folder, 'long.csv'),
    `email\n${Array.from({ length: 1_700 }, (_, number) => `long${number}@example.com`).join('\n')}\n`,
  )

  const { exitCode, err } = await doorward('users import long.csv', { folder })
  expect(exitCode).toBe(1)
  expect(err).toContain('The last row that counts is line 201; 200 were imported.')
  expect(await db.knex('auth_users').count({ count: '*' })).toMatchObject([{ count: 200 }])
  expect((await doorward('users import long.csv --json', { folder })).out).toContain('"imported":1500,"skipped":200')
  await mounted.close()
  await db.close()
})

test('a table of the host: its own fields, keys and roles, by the names of users.fields', async () => {
  const [database] = await databases()
  if (!database) throw new Error('no database')
  const db = await database.open({ memory: true })
  await db.knex.schema.createTable('people', (table) => {
    table.increments('id')
    table.text('mail').notNullable().unique()
    table.text('hash').notNullable()
    table.boolean('active').notNullable()
    table.text('role').notNullable()
    table.text('tenant').notNullable()
    table.integer('shoe')
    table.boolean('newsletter')
    table.text('stripe')
    for (const name of ['created_at', 'updated_at']) table.dateTime(name).notNullable()
  })
  const none = { name: false, lastLoginAt: false, totpSecret: false, totpEnabledAt: false, totpLastStep: false } as const
  const tables: HostTables = {
    users: {
      table: 'people',
      ids: 'integer',
      columns: {
        ...none,
        emailVerifiedAt: false,
        activatedAt: false,
        passwordSetAt: false,
        email: 'mail',
        hashedPassword: 'hash',
        isActive: 'active',
        isAdmin: { column: 'role', admin: 'boss', others: 'staff' },
      },
      fields: {
        shoe: { column: 'shoe', readOnly: true },
        newsletter: { column: 'newsletter', type: 'boolean', readOnly: true },
        stripe: { column: 'stripe', private: true, readOnly: true },
      },
      insertDefaults: ({ email }) => ({ tenant: email.split('@')[1] }),
    },
  }
  await createAuthTables(db.knex, tables)
  const auth = createAuthRouter({
    settings: { jwtSecret: testSecret, backendLinks: true, publicUrl: 'https://app.example.test' },
    environment: 'test',
    logger: logTap(),
    store: createKnexStore({ knex: db.knex, ...tables }),
  })
  const folder = appFolder(auth)
  writeFileSync(
    join(folder, 'staff.csv'),
    'id,email,is_admin,shoe,newsletter,stripe\n41,boss@example.com,true,44,yes,cus_1\n,staff@example.com,,,no,\n,odd@example.com,,,perhaps,\n',
  )
  const { out } = await doorward('users import staff.csv --keep-ids --allow-admins --json', { folder })

  expect(JSON.parse(out)).toMatchObject({ imported: 2, refused: [{ line: 4, rule: 'newsletter' }] })
  expect(await db.knex('people').select('id', 'mail', 'role', 'tenant', 'shoe', 'newsletter', 'stripe').orderBy('id')).toEqual([
    { id: 41, mail: 'boss@example.com', role: 'boss', tenant: 'example.com', shoe: 44, newsletter: 1, stripe: 'cus_1' },
    { id: 42, mail: 'staff@example.com', role: 'staff', tenant: 'example.com', shoe: null, newsletter: 0, stripe: null },
  ])
  const exported = await doorward('users export', { folder })
  expect(exported.out).not.toContain('cus_1')
  expect((await doorward('users export --with-hashes', { folder })).out).toContain('cus_1')
  await db.close()
})
