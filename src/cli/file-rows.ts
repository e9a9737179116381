import { CommandRefusal, printable, UsageError } from './terminal'

type FileFormat = 'csv' | 'jsonl'

/** `values` is null if the row cannot be read. `line` is the number of the row's last line. */
export interface FileRow {
  readonly line: number
  readonly values: Readonly<Record<string, unknown>> | null
}

interface ReadOptions {
  readonly format: FileFormat
  /** For CSV: keeps the `'` before `=`, `+`, `-` and `@`. */
  readonly isRaw: boolean
}

/** In characters. The reader keeps a whole row in memory. A row of an account is never so long. */
const mostCharacters = 1_048_576

/** `--format`, or the file's extension. @throws UsageError if the format is unknown */
export function formatOf(file: string, flag: string | undefined): FileFormat {
  const named = flag ?? (file.endsWith('.csv') ? 'csv' : /\.(jsonl|ndjson)$/.test(file) ? 'jsonl' : '')
  if (named === 'csv' || named === 'jsonl') return named
  throw new UsageError('Say --format csv or --format jsonl: the file ends in neither .csv nor .jsonl nor .ndjson.')
}

/** Reads a few rows at a time. @throws CommandRefusal if the file is not UTF-8, if CSV is broken, or if a row is too long */
export function fileRows(chunks: AsyncIterable<Buffer | string>, { format, isRaw }: ReadOptions): AsyncIterable<readonly FileRow[]> {
  return format === 'csv' ? csvRows(decoded(chunks), isRaw) : jsonRows(decoded(chunks))
}

async function* decoded(chunks: AsyncIterable<Buffer | string>): AsyncIterable<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  try {
    for await (const chunk of chunks) yield decoder.decode(Buffer.from(chunk), { stream: true })
    yield decoder.decode()
  } catch (error) {
    if (error instanceof TypeError) throw new CommandRefusal('NOT_UTF8', 'The file is not UTF-8. Convert it, for example by iconv.')
    throw error
  }
}

async function* jsonRows(texts: AsyncIterable<string>): AsyncIterable<readonly FileRow[]> {
  let [line, rest] = [0, '']
  for await (const text of texts) {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    const rows: FileRow[] = []
    for (const one of lines) {
      line += 1
      if (one.trim() !== '') rows.push({ line, values: objectIn(one, line) })
    }
    yield rows
    if (rest.length > mostCharacters) throw tooLong(line + 1)
  }
  if (rest.trim() !== '') yield [{ line: line + 1, values: objectIn(rest, line + 1) }]
}

function tooLong(line: number): CommandRefusal {
  return new CommandRefusal(
    'TOO_LONG',
    `The row at line ${line} has more than ${mostCharacters} characters. Write one account in each row.`,
  )
}

function objectIn(text: string, line: number): FileRow['values'] {
  if (line === 1 && text.trim().startsWith('['))
    throw new CommandRefusal('NO_JSON_LINES', 'This is a JSON array. Write one object in each line, for example by `jq -c ".[]"`.')
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null
  } catch {
    return null
  }
}

/** RFC 4180, with CRLF or LF. The first row contains the names. An empty cell has no value. */
async function* csvRows(texts: AsyncIterable<string>, isRaw: boolean): AsyncIterable<readonly FileRow[]> {
  const { parse } = await import('csv-parse') // loaded here, because most commands read no file
  const rows: FileRow[] = []
  let names: readonly string[] | null = null
  let [line, twice] = [0, 0]
  const parser = parse({
    relax_column_count: true,
    skip_empty_lines: true,
    max_record_size: mostCharacters,
    // This callback collects the rows, because the parser's stream would lose the rows that come before an error.
    on_record(record: readonly string[], { lines }) {
      twice += lineEndsIn(record)
      line = lines - twice
      if (names === null) names = namesOf(record)
      else rows.push({ line, values: record.length === names.length ? valuesOf(names, record, isRaw) : null })
      return null
    },
  })
  parser.on('error', () => {}).resume() // ignores the error here, because the callback of `write` or `end` gets it too
  const settled = (write: (done: (error?: Error | null) => void) => unknown) =>
    new Promise<unknown>((resolve) => write((error) => resolve(error ?? null)))
  let error: unknown = null
  for await (const text of texts) {
    error = await settled((done) => parser.write(text, done))
    yield rows.splice(0)
    if (error !== null) throw ofParser(error, line + 1)
  }
  error = await settled((done) => parser.end(done))
  yield rows.splice(0)
  if (error !== null) throw ofParser(error, line + 1)
}

/** The parser's message would quote the row. */
function ofParser(error: unknown, line: number): unknown {
  const { code } = Object(error) as { code?: unknown } // any value can be thrown
  if (code === 'CSV_MAX_RECORD_SIZE') return tooLong(line)
  if (typeof code !== 'string' || !code.startsWith('CSV_')) return error
  return new CommandRefusal('BROKEN_CSV', `The row at line ${line} has a quote where none can be (RFC 4180), so its end is not known.`)
}

/** The parser counts each CRLF inside a cell as two lines, so the caller subtracts this number. */
function lineEndsIn(record: readonly string[]): number {
  return record.reduce((count, cell) => (cell.includes('\r\n') ? count + cell.split('\r\n').length - 1 : count), 0)
}

function namesOf(record: readonly string[]): readonly string[] {
  const twice = record.find((name, place) => record.indexOf(name) !== place)
  if (twice === undefined) return record
  throw new CommandRefusal('COLUMN_TWICE', `The first row names the column ${printable(JSON.stringify(twice.slice(0, 64)))} twice.`)
}

function valuesOf(names: readonly string[], record: readonly string[], isRaw: boolean): Record<string, unknown> {
  const values: Record<string, unknown> = {}
  names.forEach((name, place) => {
    const cell = record[place]
    if (cell) values[name] = isRaw ? cell : cell.replace(/^'(?='*[=+\-@\t\r\uFF1D\uFF0B\uFF0D\uFF20])/, '') // users export adds the '
  })
  return values
}
