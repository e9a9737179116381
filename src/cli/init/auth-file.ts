import { posix } from 'node:path'
import type { Choices } from './choices'
import type { App } from './look-at-app'
import { codeOf, type ProviderCode } from './providers'
import type { FilledColumn, FoundUsersTable } from './users-table'

/** The data that determines the auth module. */
export interface Plan {
  readonly app: Pick<App, 'language' | 'modules' | 'authFile' | 'knexfile'>
  readonly choices: Choices
  /** The app's own users table. Null if the app uses the users table of doorward. */
  readonly users: FoundUsersTable | null
}

type Lines = readonly string[]

/** Returns the text of the module that makes the router. The app's developers edit the module later. */
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
    ...(isCommonJs ? ['', 'module.exports = { auth }'] : []),
  ]
  return `${lines.join('\n')}\n`
}

/** Returns true if the module uses `require`. TypeScript uses `import` in both module systems. */
export function usesRequire({ app }: Pick<Plan, 'app'>): boolean {
  return app.language === 'JavaScript' && app.modules === 'CommonJS'
}

/**
 * Returns true if the module imports the knexfile. A TypeScript module does not import the knexfile, because the import could change the
 * folder layout of the build. A TypeScript module reads the connection from the environment.
 */
function importsKnexfile({ app }: Plan): boolean {
  const { knexfile, language, modules } = app
  if (!knexfile || knexfile.shape === null) return false
  return language === 'JavaScript' && (modules === 'ESM' || !knexfile.isModule)
}

/** Returns true if the module reads the database URL from the environment. */
export function needsDatabaseUrl(plan: Plan): boolean {
  return !importsKnexfile(plan) && plan.choices.client !== 'better-sqlite3'
}

function imports(plan: Plan, providers: readonly ProviderCode[]): Lines {
  const { app, users } = plan
  const types = users && app.language === 'TypeScript' ? ['type HostTables'] : []
  const classes = providers.map(({ className }) => className)
  const names = ['createAuthRouter', 'createKnexStore', 'settingsFromEnv', 'smtpMailer', ...types, ...classes].sort(byName)
  const knexfile = importsKnexfile(plan) && app.knexfile ? fromAuthFile(app.authFile, app.knexfile.path) : null
  const list = `{ ${names.join(', ')} }`
  if (usesRequire(plan))
    return [
      `const ${list} = require('doorward')`,
      "const knex = require('knex')",
      ...(knexfile === null ? [] : [`const knexfile = require('${knexfile}')`]),
    ]
  return [`import ${list} from 'doorward'`, "import knex from 'knex'", ...(knexfile === null ? [] : [`import knexfile from '${knexfile}'`])]
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

function database(plan: Plan): Lines {
  const { app, choices } = plan
  const another = app.knexfile ? ['// Your app has a knex instance already? Take it in here: one pool is enough.'] : []
  if (importsKnexfile(plan)) {
    const isFlat = app.knexfile?.shape === 'flat'
    return [...another, `const db = knex(${isFlat ? 'knexfile' : "knexfile[NODE_ENV || 'development']"})`]
  }
  if (choices.client !== 'better-sqlite3') return [...another, `const db = knex({ client: '${choices.client}', connection: DATABASE_URL })`]
  const filename = quotedText(app.knexfile?.sqliteFile ?? 'app.sqlite')
  return [...another, `const db = knex({ client: 'better-sqlite3', connection: { filename: ${filename} }, useNullAsDefault: true })`]
}

/** Returns the options of the app's users table for `createKnexStore` and `createAuthTables`. */
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

/** Returns the function that fills the app's columns: with an empty text, or with the address where no two rows may be equal. */
function fillingTexts(columns: readonly FilledColumn[]): string {
  const entries = columns.map(
    ({ name, isUnique }) => `${/^[a-z_$][\w$]*$/i.test(name) ? name : quotedText(name)}: ${isUnique ? 'email' : "''"}`,
  )
  return `(${columns.some(({ isUnique }) => isUnique) ? '{ email }' : ''}) => ({ ${entries.join(', ')} })`
}

export function quotedText(text: string): string {
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
    ...(providers.length === 0 ? [] : ['oauthEnabled: true,']),
    ...(providers.length === 0 || hasPages || delivery === 'bearer'
      ? []
      : ["oauthSuccessRedirect: '/', // where a login by provider ends"]),
  ]
}
