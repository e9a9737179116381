import { type CommandAnswer, UsageError } from './answer'

export const help = `Usage: doorward <command>

  init              writes the auth module of an app and the other files that it needs (--delivery --client --providers --pages --hash-column --print)
  doctor            checks the app and says what is wrong, why it matters and how to fix it (--strict)
  secret            prints a secret for AUTH_JWT_SECRET
  secret mfa        prints a key for AUTH_MFA_SECRET_KEY
  keys new          prints a signing key, an entry of AUTH_JWT_KEYS (--alg ES256, RS256 or PS256)
  keys list         lists the keys of AUTH_JWT_KEYS, without their private parts
  keys rotate       prints the next value of AUTH_JWT_KEYS (--step publish, sign or retire)
  migrate status    shows which versions of the tables exist
  migrate up        makes the missing tables, columns and indexes (--table: the table of the record, default auth_migrations)
  migrate sql       prints the SQL that migrate up would run
  users create      creates an account (<email> --name --admin --verified --password-stdin)
  users list        lists accounts (--filter key=value --limit --cursor)
  users show        shows an account (<id or email>, as below)
  users admin       makes an account an administrator (--revoke: ends that)
  users deactivate  deactivates an account and revokes its sessions
  users activate    activates an account
  users reset-mfa   removes the second factor (--passkeys: also every passkey)
  users revoke-sessions  revokes all sessions of an account
  users import      creates accounts from a file (<file> or -, --format --map --dry-run --ignore-unknown --keep-ids --allow-admins --raw)
  users export      prints accounts (--format csv or jsonl, --filter --with-hashes --raw)
  purge             deletes expired rows

  --auth <file>     the module that exports the router
  --env-file <file> read instead of .env (--no-env-file: no file is read)
  --yes             does not ask (init: uses the defaults)
  --json            prints one JSON document
  --verbose         shows errors in full, which may contain personal data (doctor: also lists the skipped checks)
  --help            prints this help`

/** Examples of each command. An example works in an app that has the named accounts and files. */
export const examples: Readonly<Record<string, readonly string[]>> = {
  init: [
    'doorward init --yes',
    'doorward init --delivery cookie --client pg --providers google,github --pages no',
    'doorward init --yes --print',
  ],
  doctor: ['doorward doctor', 'doorward doctor --strict --json'],
  secret: ['doorward secret', 'doorward secret mfa'],
  keys: ['doorward keys new --alg ES256', 'doorward keys list', 'doorward keys rotate --step publish'],
  migrate: ['doorward migrate status', 'doorward migrate up', 'doorward migrate sql > tables.sql'],
  users: [
    'doorward users create ada@example.com --admin --verified',
    'doorward users list --filter is_active=false --limit 100',
    'doorward users show ada@example.com',
    'doorward users admin ada@example.com --revoke --yes',
    'doorward users deactivate ada@example.com',
    'doorward users import people.csv --map email=Mail,password_hash=encrypted_password --dry-run',
    'doorward users export --format csv > people.csv',
  ],
  purge: ['doorward purge', 'doorward purge --json --env-file production.env'],
}

/**
 * Returns the help of one command, with examples.
 * @throws UsageError for an unknown command
 */
export function helpFor(command: string, verb: string | undefined): CommandAnswer {
  if (command === '') return { json: { help }, text: help }
  const name = [command, verb].filter(Boolean).join(' ')
  const [head = '', flags = ''] = help.split('\n\n').slice(1)
  const lines = head.split('\n').filter((line) => new RegExp(`^  ${escaped(name)}( |$)`).test(line))
  if (lines.length === 0) throw new UsageError(help)
  const presented = (examples[command] ?? []).filter((example) => `${example} `.startsWith(`doorward ${name} `))
  const text = [
    'Usage:',
    lines.join('\n'),
    '',
    flags,
    ...(presented.length > 0 ? ['', 'Examples:', ...presented.map((line) => `  ${line}`)] : []),
  ].join('\n')
  return { json: { help: text, examples: presented }, text }
}

/** Escapes text that the user typed, for use in a regular expression. */
function escaped(words: string): string {
  return words.replace(/[^\w -]/g, '\\$&')
}
