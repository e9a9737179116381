import type { UserExport } from '../admin/operations/operations'
import { described } from './failure'
import { type CommandAnswer, type Surroundings, UsageError } from './terminal'

type Rows = readonly Readonly<Record<string, unknown>>[]

interface Writer {
  readonly begin: string
  rows(rows: Rows): string
  readonly end: string
}

interface ExportForm {
  readonly format: string | undefined
  readonly isJson: boolean
  /** For CSV: writes no `'` before `=`, `+`, `-` and `@`. A spreadsheet then reads such a value as a formula. */
  readonly isRaw: boolean
}

export async function exportUsersCommand(accounts: UserExport, form: ExportForm, { out }: Surroundings): Promise<CommandAnswer> {
  const writer = await writerOf(accounts, form)
  let count = 0
  await out(writer.begin)
  try {
    for await (const rows of accounts.rows()) {
      count += rows.length
      await out(writer.rows(rows))
    }
  } catch (error) {
    if (!form.isJson) throw error
    const { code, message } = described(error)
    await out(`],"error":${JSON.stringify({ code, message })}}\n`) // completes the JSON document
    return { isWritten: true, note: message, isNo: true, cause: error }
  }
  await out(writer.end)
  return { isWritten: true, note: `${count} accounts` }
}

async function writerOf({ fields }: UserExport, { format = 'jsonl', isJson, isRaw }: ExportForm): Promise<Writer> {
  if (isJson) return documentWriter()
  if (format === 'jsonl') return { begin: '', rows: (rows) => rows.map((row) => `${JSON.stringify(row)}\n`).join(''), end: '' }
  if (format !== 'csv') throw new UsageError('--format must be csv or jsonl.')
  const { stringify } = await import('csv-stringify/sync') // loaded only for CSV
  const cells = { cast: { boolean: String, ...(!isRaw && { string: asText }) } }
  return {
    begin: stringify([fields], cells),
    rows: (rows) =>
      stringify(
        rows.map((row) => fields.map((name) => row[name])),
        cells,
      ),
    end: '',
  }
}

/** A spreadsheet then reads the value as text. `users import` removes the `'`. */
function asText(value: string): string {
  return /^'*[=+\-@\t\r\uFF1D\uFF0B\uFF0D\uFF20]/.test(value) ? `'${value}` : value
}

function documentWriter(): Writer {
  let isFirst = true
  return {
    begin: '{"users":[',
    rows(rows) {
      const text = rows.map((row) => JSON.stringify(row)).join(',')
      const comma = isFirst || text === '' ? '' : ','
      isFirst &&= text === ''
      return comma + text
    },
    end: ']}\n',
  }
}
