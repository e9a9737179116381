import { closeSync, mkdirSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { sentenceOf } from '../../core/error-sentence'
import { CommandRefusal } from '../terminal'
import { type Choices, codeOf, type ProviderCode } from './choices'
import type { App, Knexfile } from './read-knexfile'
import type { FilledColumn, FoundUsersTable } from './users-table'

export interface Plan {
  readonly app: Pick<App, 'language' | 'modules' | 'authFile' | 'knexfile' | 'library'>
  readonly choices: Choices
  readonly users: FoundUsersTable | null
}

type Lines = readonly string[]

export function authFile(plan: Plan): string {
  const { app, choices, users } = plan
  const isCommonJs = usesRequire(plan)
  const providers = choices.providers.map(codeOf)
  const lines = [
    ...imports(plan, providers),
    '',
    ...environment(plan, providers),
    '',
    ...database(plan),
    ...(users ? ['', ...tablesOf(users, app.language)] : []),
    '',
    '/** The router: `app.use("/auth", auth)`. The `doorward` command reads this export too. */',
    isCommonJs ? 'const auth = createAuthRouter({' : 'export const auth = createAuthRouter({',
    `  store: createKnexStore({ knex: db${users ? ', ...tables' : ''} }),`,
    '  mailer: isDevelopment',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the written file contains the template
    '    ? { send: async ({ to, text }) => console.log(`Mail to ${to}\\n${text}`) }',
    '    : smtpMailer({ url: SMTP_URL, from: MAIL_FROM }),',
    ...providersOption(providers),
    '  settings: {',
    '    ...settingsFromEnv(), // AUTH_JWT_SECRET, AUTH_PUBLIC_URL and any other setting of docs/configuration.md',
    ...settings(choices).map((line) => `    ${line}`),
    '  },',
    '})',
    ...(isCommonJs ? ['', app.library ? 'module.exports = { auth, pool }' : 'module.exports = { auth }'] : []),
  ]
  return `${lines.join('\n')}\n`
}

/** TypeScript uses `import` in both module systems. */
export function usesRequire({ app }: Pick<Plan, 'app'>): boolean {
  return app.language === 'JavaScript' && app.modules === 'CommonJS'
}

/** An import of the knexfile could change the folder layout of a TypeScript build, so TypeScript reads the environment. */
function importsKnexfile({ app }: Plan): boolean {
  const { knexfile, language, modules } = app
  if (!knexfile || knexfile.shape === null) return false
  return language === 'JavaScript' && (modules === 'ESM' || !knexfile.isModule)
}

export function needsDatabaseUrl(plan: Plan): boolean {
  return !importsKnexfile(plan) && plan.choices.client !== 'better-sqlite3'
}

function imports(plan: Plan, providers: readonly ProviderCode[]): Lines {
  const { app, users } = plan
  const types = users && app.language === 'TypeScript' ? ['type HostTables'] : []
  const classes = providers.map(({ className }) => className)
  const onPool = app.library ? ['knexOn'] : []
  const names = ['createAuthRouter', 'createKnexStore', ...onPool, 'settingsFromEnv', 'smtpMailer', ...types, ...classes].sort(byName)
  const knexfile = importsKnexfile(plan) && app.knexfile ? fromAuthFile(app.authFile, app.knexfile.path) : null
  const list = `{ ${names.join(', ')} }`
  const [name, from] = app.library ? pools[plan.choices.client].load : ['knex', 'knex']
  if (usesRequire(plan))
    return [
      `const ${list} = require('doorward')`,
      `const ${name} = require('${from}')`,
      ...(knexfile === null ? [] : [`const knexfile = require('${knexfile}')`]),
    ]
  return [
    `import ${list} from 'doorward'`,
    `import ${name} from '${from}'`,
    ...(knexfile === null ? [] : [`import knexfile from '${knexfile}'`]),
  ]
}

function byName(one: string, other: string): number {
  return one.replace('type ', '').toLowerCase() < other.replace('type ', '').toLowerCase() ? -1 : 1
}

function fromAuthFile(authFile: string, path: string): string {
  const relative = posix.relative(posix.dirname(authFile), path)
  return relative.startsWith('.') ? relative : `./${relative}`
}

function environment(plan: Plan, providers: readonly ProviderCode[]): Lines {
  const needsUrl = needsDatabaseUrl(plan)
  const names = ['NODE_ENV', 'AUTH_JWT_SECRET', ...(needsUrl ? ['DATABASE_URL'] : []), "SMTP_URL = ''", "MAIL_FROM = ''"]
  const ofProviders = providers.map(({ clientId, clientSecret }) => `const { ${clientId} = '', ${clientSecret} = '' } = process.env`)
  return [
    `const { ${names.join(', ')} } = process.env`,
    ...ofProviders,
    "const isDevelopment = NODE_ENV === 'development' // anything else is production",
    "if (!AUTH_JWT_SECRET) throw new Error('AUTH_JWT_SECRET is missing: write what `npx --no-install doorward secret` prints into .env.')",
    "if (!isDevelopment && !(SMTP_URL && MAIL_FROM)) throw new Error('SMTP_URL or MAIL_FROM is missing: write your mail server and the sender into .env.')",
    ...(needsUrl ? ["if (!DATABASE_URL) throw new Error('DATABASE_URL is missing: write the address of your database into .env.')"] : []),
  ]
}

/** How the app makes its pool with each driver. */
const pools = {
  pg: { load: ['pg', 'pg'], make: 'new pg.Pool({ connectionString: DATABASE_URL })' },
  mysql2: { load: ['{ createPool }', 'mysql2'], make: 'createPool(DATABASE_URL)' },
  'better-sqlite3': { load: ['Database', 'better-sqlite3'], make: "new Database('app.sqlite')" },
} as const

function database(plan: Plan): Lines {
  const { app, choices } = plan
  if (app.library)
    return [
      `// Give this pool to ${app.library} too, or take in the one that it has. A sign-up in one transaction with your rows: docs/your-connection.md.`,
      `${usesRequire(plan) ? '' : 'export '}const pool = ${pools[choices.client].make}`,
      'const db = knexOn(pool)',
    ]
  const another = app.knexfile ? ['// Your app has a knex instance already? Take it in here: one pool is enough.'] : []
  if (importsKnexfile(plan)) {
    const isFlat = app.knexfile?.shape === 'flat'
    return [...another, `const db = knex(${isFlat ? 'knexfile' : "knexfile[NODE_ENV || 'development']"})`]
  }
  if (choices.client !== 'better-sqlite3') return [...another, `const db = knex({ client: '${choices.client}', connection: DATABASE_URL })`]
  const filename = quotedText(app.knexfile?.sqliteFile ?? 'app.sqlite')
  return [...another, `const db = knex({ client: 'better-sqlite3', connection: { filename: ${filename} }, useNullAsDefault: true })`]
}

function tablesOf({ table, ids, columns, filled }: FoundUsersTable, language: App['language']): Lines {
  const entries = Object.entries(columns)
  return [
    '/** Your users table, in the words of doorward (docs/store.md, "Tables of your own"). */',
    'const tables = {',
    '  users: {',
    `    table: ${quotedText(table)},`,
    ...(ids === 'uuid' ? [] : [`    ids: '${ids}',`]),
    ...(entries.length === 0
      ? []
      : ['    columns: {', ...entries.map(([field, column]) => `      ${field}: ${literal(column)},`), '    },']),
    ...(filled.length === 0 ? [] : [`    insertDefaults: ${fillingTexts(filled)}, // what a new row needs of your own columns`]),
    '  },',
    language === 'TypeScript' ? '} satisfies HostTables' : '}',
  ]
}

function literal(column: string | false): string {
  return column === false ? 'false' : quotedText(column)
}

/** With an empty text, or with the address where no two rows may be equal. */
function fillingTexts(columns: readonly FilledColumn[]): string {
  const entries = columns.map(
    ({ name, isUnique }) => `${/^[a-z_$][\w$]*$/i.test(name) ? name : quotedText(name)}: ${isUnique ? 'email' : "''"}`,
  )
  return `(${columns.some(({ isUnique }) => isUnique) ? '{ email }' : ''}) => ({ ${entries.join(', ')} })`
}

function quotedText(text: string): string {
  return `'${text.replace(/[\\']/g, '\\$&')}'`
}

function providersOption(providers: readonly ProviderCode[]): Lines {
  if (providers.length === 0) return []
  const entries = providers.map(
    ({ name, className, clientId, clientSecret }) =>
      `    ${name}: new ${className}({ clientId: ${clientId}, clientSecret: ${clientSecret} }),`,
  )
  return ['  providers: {', ...entries, '  },']
}

function settings({ delivery, providers, hasPages }: Choices): Lines {
  return [
    `tokenDelivery: '${delivery}',`,
    ...(delivery === 'bearer' ? [] : ['cookieSecure: !isDevelopment, // your machine has no https']),
    ...(delivery === 'cookie' || delivery === 'both'
      ? ['refreshReuseGraceSeconds: 10, // two tabs that refresh at once stay signed in']
      : []),
    hasPages
      ? 'pagesEnabled: true, // /auth/signup, /auth/login, /auth/account'
      : 'backendLinks: true, // mailed links open a page of ours',
    "mailedCodes: 'both', // mails also have a code, for the browser that asked",
    ...(providers.length === 0 ? [] : ['oauthEnabled: true,']),
    ...(providers.length === 0 || hasPages || delivery === 'bearer'
      ? []
      : ["oauthSuccessRedirect: '/', // where a login by provider ends"]),
  ]
}

export function envExample(plan: Plan): string {
  const lines = [
    '# Copy this file to .env, fill it in there, and keep .env out of git.',
    '',
    '# development on your machine; anything else is production',
    'NODE_ENV=',
    '# What `npx --no-install doorward secret` prints; the same in every process and after every restart',
    'AUTH_JWT_SECRET=',
    '# The public address of the app: https, or http://localhost:3000 on your machine',
    'AUTH_PUBLIC_URL=',
    ...(needsDatabaseUrl(plan) ? ['# The address of the database', 'DATABASE_URL='] : []),
    '# In production: the mail server (smtps://…), and the sender of the mails',
    'SMTP_URL=',
    'MAIL_FROM=',
    ...plan.choices.providers.flatMap((name) => {
      const { clientId, clientSecret } = codeOf(name)
      return [`# From ${name}, with the redirect URI <AUTH_PUBLIC_URL>/auth/oauth/${name}/callback`, `${clientId}=`, `${clientSecret}=`]
    }),
  ]
  return `${lines.join('\n')}\n`
}

/** For the app's own folder. @param now the time in the name of the file */
export function migrationFile({ users }: Pick<Plan, 'users'>, knexfile: Knexfile, now: Date): { path: string; text: string } {
  const ending = /[cm]?[jt]s$/.exec(knexfile.path)?.[0] ?? 'js'
  const stamp = now.toISOString().replace(/\D/g, '').slice(0, 14)
  const path = posix.join(knexfile.migrations, `${stamp}_doorward.${ending}`)
  const call = `createAuthTables(knex${users ? `, { users: { ${keyOf(users)} } }` : ''})`
  const about = '/** Makes the tables of doorward, or brings them up to date; it may run again. */'
  const stays = '/** A rollback leaves them: they hold accounts. */'
  const alone = 'transaction: false } // MariaDB makes no table in one, PostgreSQL no index beside running logins'
  const isTypeScript = ending.endsWith('ts')
  const lines =
    knexfile.isModule || isTypeScript
      ? [
          "import { createAuthTables } from 'doorward'",
          ...(isTypeScript ? ["import type { Knex } from 'knex'"] : []),
          '',
          about,
          `export async function up(${isTypeScript ? 'knex: Knex' : 'knex'})${isTypeScript ? ': Promise<void>' : ''} {`,
          `  await ${call}`,
          '}',
          '',
          stays,
          `export async function down()${isTypeScript ? ': Promise<void>' : ''} {}`,
          '',
          `export const config = { ${alone}`,
        ]
      : [
          "const { createAuthTables } = require('doorward')",
          '',
          about,
          `exports.up = (knex) => ${call}`,
          '',
          stays,
          'exports.down = async () => {}',
          '',
          `exports.config = { ${alone}`,
        ]
  return { path, text: `${lines.join('\n')}\n` }
}

function keyOf({ table, ids, columns: { id } }: FoundUsersTable): string {
  return [
    `table: ${quotedText(table)}`,
    ...(ids === 'uuid' ? [] : [`ids: '${ids}'`]),
    ...(id ? [`columns: { id: ${quotedText(id)} }`] : []),
  ].join(', ')
}

export interface NewFile {
  readonly path: string
  readonly text: string
}

/** All or none, and overwrites none. @throws CommandRefusal if a file cannot be written */
export function writeFiles(folder: string, files: readonly NewFile[]): void {
  const made: string[] = []
  for (const { path, text } of files) {
    try {
      const directory = mkdirSync(join(folder, dirname(path)), { recursive: true }) // the first directory that mkdirSync creates
      if (directory !== undefined) made.push(directory)
      const file = openSync(join(folder, path), 'wx')
      made.push(join(folder, path))
      writeFileSync(file, text)
      closeSync(file)
    } catch (error) {
      for (const written of made.toReversed()) rmSync(written, { recursive: true, force: true })
      throw new CommandRefusal('NOT_WRITTEN', `${path} cannot be written, so nothing was: ${sentenceOf(error)}`, { cause: error })
    }
  }
}
