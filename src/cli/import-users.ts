import { createReadStream, statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { ImportOutcome, UserImporter } from '../admin/operations/import-users'
import { type AuthModuleFlags, loadAuth } from './auth-module'
import { described, wholeOf } from './failure'
import { type FileRow, fileRows, formatOf } from './file-rows'
import { type CommandAnswer, CommandRefusal, printable, type Surroundings, UsageError } from './terminal'

export interface ImportFlags extends AuthModuleFlags {
  readonly format?: string | undefined
  readonly map?: readonly string[] | undefined
  readonly raw?: boolean | undefined
  readonly 'ignore-unknown'?: boolean | undefined
  readonly 'allow-admins'?: boolean | undefined
  readonly 'keep-ids'?: boolean | undefined
  readonly 'dry-run'?: boolean | undefined
  readonly json?: boolean | undefined
}

interface Refused {
  readonly line: number
  readonly rule: string
  readonly message: string
}

interface Admin {
  readonly line: number
  readonly id: unknown
}

interface Tally {
  imported: number
  skipped: number
  refused: number
  admins: number
  line: number
}

/** Rows in one INSERT. A batch of 500 rows needs 8 MiB more and is hardly faster. */
const batchSize = 200

/** An existing account stays unchanged, so the host can run the command again after an interruption. */
export async function importUsersCommand(file: string, flags: ImportFlags, surroundings: Surroundings): Promise<CommandAnswer> {
  const format = formatOf(file, flags.format)
  const sources = sourcesOf(flags.map)
  const chunks = file === '-' ? surroundings.stdin() : contentsOf(resolve(surroundings.folder, file), file)
  const { auth, operations } = await loadAuth(surroundings, flags)
  const isDryRun = flags['dry-run'] === true
  const importer = await operations.importUsers({ isDryRun, keepsIds: flags['keep-ids'] === true })
  const read = namedBy(sources, knownNames(importer, flags), { isIgnoring: flags['ignore-unknown'] === true, isFixed: format === 'csv' })
  if (!importer.checksHashes) surroundings.err(uncheckedHashes)
  const tally: Tally = { imported: 0, skipped: 0, refused: 0, admins: 0, line: 0 }
  const list: { readonly refused: Refused[]; readonly admins: Admin[] } = { refused: [], admins: [] } // printed as one document
  const tell = async (news: readonly News[]) => {
    if (!flags.json && news.length > 0) await surroundings.out(news.map(lineOf).join(''))
    for (const one of news) {
      if (flags.verbose && 'cause' in one) surroundings.err(`line ${one.line}  ${wholeOf(one.cause)}\n`)
      if (!flags.json) continue
      if ('rule' in one) list.refused.push({ line: one.line, rule: one.rule, message: one.message })
      else list.admins.push(one)
    }
  }
  try {
    await importAll(importer, fileRows(chunks, { format, isRaw: flags.raw === true }), { read, tally, tell, surroundings })
  } catch (error) {
    throw stopped(error, tally)
  } finally {
    importer.end()
    await auth.drain()
  }
  const { imported, skipped, refused, admins } = tally
  const takesAdmins = flags['allow-admins'] === true
  return {
    json: { imported, skipped, refused: list.refused, ...(takesAdmins && { admins: list.admins }) },
    text: `imported  ${imported}\nskipped  ${skipped}\nrefused  ${refused}${takesAdmins ? `\nadmins  ${admins}` : ''}`,
    ...(isDryRun && { note: 'Nothing was written: this is what an import would do.' }),
    isNo: refused > 0,
  }
}

const uncheckedHashes =
  'The hasher of this app has no reads(hash), so doorward cannot distinguish a hash from a plain password. Make sure that the file contains only hashes (docs/passwords.md).\n'

type News = (Refused & { readonly cause?: unknown }) | Admin

function lineOf(news: News): string {
  if ('rule' in news) return `line ${news.line}  ${news.rule}  ${news.message}\n`
  return `line ${news.line}  admin${news.id === null ? '' : `  ${printable(news.id)}`}\n`
}

function contentsOf(path: string, named: string): AsyncIterable<Buffer | string> {
  if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true) throw new UsageError(`There is no file ${named}.`)
  return createReadStream(path)
}

/** `email=Mail,password_hash=encrypted_password`: our name, then the name in the file. */
function sourcesOf(maps: readonly string[] = []): ReadonlyMap<string, string> {
  const pairs = maps.flatMap((text) => text.split(',')).map((pair) => pair.split('='))
  if (!pairs.every((pair): pair is [string, string] => pair.length === 2 && pair.every((word) => word !== '')))
    throw new UsageError('Write --map ours=theirs,…, for example --map email=Mail,password_hash=encrypted_password.')
  return new Map(pairs)
}

function knownNames({ fields }: UserImporter, flags: ImportFlags): ReadonlySet<string> {
  const withheld = [...(flags['keep-ids'] ? [] : ['id']), ...(flags['allow-admins'] ? [] : ['is_admin'])]
  return new Set(fields.filter((name) => !withheld.includes(name)))
}

type Values = Readonly<Record<string, unknown>>
type ReadRow = (row: FileRow) => { readonly line: number; readonly values: Values } | Refused

/** @param isFixed every row has the same names. One unknown name then rejects the whole file. */
function namedBy(
  sources: ReadonlyMap<string, string>,
  known: ReadonlySet<string>,
  { isIgnoring, isFixed }: { isIgnoring: boolean; isFixed: boolean },
): ReadRow {
  for (const name of sources.keys()) if (!known.has(name)) throw new UsageError(unknownNames([name]))
  const ours = new Map([...sources].map(([name, source]) => [source, name]))
  const nameOf = (source: string) => ours.get(source) ?? (known.has(source) && !sources.has(source) ? source : null)
  return ({ line, values: given }) => {
    if (given === null)
      return { line, rule: 'syntax', message: 'The row cannot be read, or has another number of cells than the first row.' }
    const values: Record<string, unknown> = {}
    const unknown: string[] = []
    for (const source of Object.keys(given)) {
      const name = nameOf(source)
      if (name !== null) values[name] = given[source]
      else if (source === 'password') throw new CommandRefusal('PLAIN_PASSWORD', plainPassword)
      else unknown.push(source)
    }
    if (unknown.length === 0 || isIgnoring) return { line, values }
    if (isFixed) throw new CommandRefusal('UNKNOWN_FIELDS', unknownNames(unknown))
    return { line, rule: 'unknown_field', message: unknownNames(unknown) }
  }
}

const plainPassword = 'A plain password is never imported. Where the column `password` holds hashes, say --map password_hash=password.'

function unknownNames(names: readonly string[]): string {
  const presented = names.slice(0, 10).map((name) => printable(JSON.stringify(name.slice(0, 64))))
  const flags = [names.includes('id') ? '--keep-ids takes ids.' : '', names.includes('is_admin') ? '--allow-admins takes is_admin.' : '']
  return ['Not a field of an account:', `${presented.join(', ')}. Name it by --map, or say --ignore-unknown.`, ...flags]
    .filter(Boolean)
    .join(' ')
}

interface Run {
  readonly read: ReadRow
  readonly tally: Tally
  readonly tell: (news: readonly News[]) => Promise<void>
  readonly surroundings: Surroundings
}

/** Reads the next batch while the database inserts one, so at most two batches are in memory. */
async function importAll(
  importer: UserImporter,
  groups: AsyncIterable<readonly FileRow[]>,
  { read, tally, tell, surroundings }: Run,
): Promise<void> {
  let batch: ReturnType<ReadRow>[] = []
  let underWay: Promise<void> = Promise.resolve()
  const add = (rows: typeof batch): Promise<void> => {
    // Keeps no values of the rows during the insertion, except the id of an administrator.
    const lines = rows.map((row) =>
      'values' in row ? { line: row.line, id: row.values['is_admin'] ? (row.values['id'] ?? null) : null } : row,
    )
    const outcomes = importer.add(rows.flatMap((row) => ('values' in row ? [row.values] : [])))
    return outcomes.then((all) => tell(newsOf(tally, lines, all)))
  }
  const send = async () => {
    const next = add(batch)
    next.catch(() => {}) // the next `await underWay` throws this error
    batch = []
    await underWay
    underWay = next
  }
  const take = (row: FileRow) => {
    batch.push(read(row))
    if (surroundings.terminal && row.line % 50_000 === 0) surroundings.err(`line ${row.line}\n`)
  }
  try {
    for await (const rows of groups)
      for (const row of rows) {
        take(row)
        if (batch.length === batchSize) await send()
      }
  } finally {
    await send() // inserts the rows before a broken row
    await underWay
  }
}

/** An item of `lines` has the line number, and the reason if the command rejected the row before the insertion. */
function newsOf(tally: Tally, lines: readonly (Admin | Refused)[], outcomes: readonly ImportOutcome[]): News[] {
  const next = outcomes.values()
  const news: News[] = []
  for (const row of lines) {
    const outcome = 'rule' in row ? row : next.next().value
    tally.line = row.line
    if (outcome === 'skipped') tally.skipped += 1
    else if (typeof outcome === 'object') {
      tally.refused += 1
      news.push({ ...outcome, line: row.line })
    } else if (outcome) {
      tally.imported += 1
      if (outcome === 'imported' || 'rule' in row) continue
      tally.admins += 1
      news.push(row)
    }
  }
  return news
}

function stopped(error: unknown, { line, imported, admins }: Tally): Error {
  const { code, message } = described(error)
  const rest =
    line === 0
      ? ''
      : ` The last row that counts is line ${line}; ${imported} were imported${admins === 0 ? '' : `, ${admins} of them administrators`}. Run the import again: it skips the accounts that exist already.`
  return new CommandRefusal(code, `${message}${rest}`, { cause: error })
}
