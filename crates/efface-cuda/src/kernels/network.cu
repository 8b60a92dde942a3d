// What is done with networks beside products. Matrices have a column a token, one column after the other; a text keeps its place
// in the minibatch through all steps. Sums are made in an order that depends on the sizes alone, so that one card gives one
// result.

#define BLOCK 256
// Where this thread works.
#define AT ((size_t)blockIdx.x * blockDim.x + threadIdx.x)

__device__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

// The sum over a block of BLOCK threads, in every one of them.
__device__ float block_sum(float value) {
    __shared__ float parts[BLOCK];
    __syncthreads();
    parts[threadIdx.x] = value;
    __syncthreads();
    for (int half = BLOCK / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
        __syncthreads();
    }
    return parts[0];
}

// Texts, units and terms that a block of a step works on at a time.
#define TEXTS 64
#define UNITS 4
#define TERMS 32

// One step of an LSTM, product and all: G += W_hh h'; i, f, o = sigmoid(G + b), g = tanh(G + b); c = f c' + i g; h = o tanh(c). Gates
// leave as activations. A block has the four gates of UNITS units for TEXTS texts, a thread those of one unit and one text, so that a
// narrow minibatch keeps the whole card busy. While one part of W_hh and h' is multiplied, the next is on its way.
extern "C" __global__ void lstm_forward(float* gates, const float* weights, const float* before, const float* bias,
                                        const float* cells_before, float* cells, float* squashed, float* output, float* before_next,
                                        int hidden, int active, int remembering, int height, int next_active) {
    __shared__ float4 own[TERMS][UNITS];
    __shared__ float states[TERMS][TEXTS + 1];
    int unit = threadIdx.x / TEXTS, text = threadIdx.x % TEXTS;
    int first_unit = blockIdx.x * UNITS, first_text = blockIdx.y * TEXTS;
    int j = first_unit + unit, place = first_text + text;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    // Of texts that begin at this step h' is 0, and a step that no text remembers has no product.
    if (first_text < remembering) {
        const int PARTS = TERMS * UNITS * 4 / BLOCK, STATES = TERMS * TEXTS / BLOCK;
        float next_own[PARTS], next_states[STATES];
        for (int first = -TERMS; first < hidden; first += TERMS) {
            if (first >= 0) {
                __syncthreads();
#pragma unroll
                for (int part = 0; part < PARTS; part++) {
                    int at = part * BLOCK + threadIdx.x, gate = at / UNITS % 4;
                    ((float*)&own[at / (4 * UNITS)][at % UNITS])[gate] = next_own[part];
                }
#pragma unroll
                for (int part = 0; part < STATES; part++) {
                    int at = part * BLOCK + threadIdx.x;
                    states[at % TERMS][at / TERMS] = next_states[part];
                }
                __syncthreads();
            }
            int next = first + TERMS;
#pragma unroll
            for (int part = 0; part < PARTS; part++) {
                int at = part * BLOCK + threadIdx.x, gate = at / UNITS % 4, k = next + at / (4 * UNITS), row = first_unit + at % UNITS;
                bool is_there = k < hidden && row < hidden;
                next_own[part] = is_there ? weights[(size_t)k * 4 * hidden + gate * hidden + row] : 0.0f;
            }
#pragma unroll
            for (int part = 0; part < STATES; part++) {
                int at = part * BLOCK + threadIdx.x, k = next + at % TERMS, column = first_text + at / TERMS;
                next_states[part] = k < hidden && column < remembering ? before[(size_t)column * hidden + k] : 0.0f;
            }
            if (first >= 0) {
#pragma unroll
                for (int k = 0; k < TERMS; k++) {
                    float4 w = own[k][unit];
                    float h = states[k][text];
                    sum.x += w.x * h;
                    sum.y += w.y * h;
                    sum.z += w.z * h;
                    sum.w += w.w * h;
                }
            }
        }
    }
    if (j >= hidden || place >= active) return;
    size_t at = (size_t)place * hidden + j;
    float* gate = gates + (size_t)4 * hidden * place + j;
    float i = sigmoid(gate[0] + bias[j] + sum.x);
    float f = sigmoid(gate[hidden] + bias[hidden + j] + sum.y);
    float g = tanhf(gate[2 * hidden] + bias[2 * hidden + j] + sum.z);
    float o = sigmoid(gate[3 * hidden] + bias[3 * hidden + j] + sum.w);
    float cell_before = place < remembering ? cells_before[at] : 0.0f;
    float cell = f * cell_before + i * g;
    float level = tanhf(cell);
    gate[0] = i;
    gate[hidden] = f;
    gate[2 * hidden] = g;
    gate[3 * hidden] = o;
    cells[at] = cell;
    squashed[at] = level;
    output[(size_t)height * place + j] = o * level;
    if (place < next_active) before_next[at] = o * level;
}

// The same step back. Activations leave as the gradients of what they were made from; `carried` is what the step after this one
// gives back to h, of its first `later` texts.
extern "C" __global__ void lstm_backward(float* gates, const float* cells_before, const float* squashed, const float* output_gradient,
                                         const float* carried, float* cell_gradient, int hidden, int active, int remembering,
                                         int later, int height) {
    size_t at = AT;
    if (at >= (size_t)hidden * active) return;
    int place = at / hidden, j = at % hidden;
    float* gate = gates + (size_t)4 * hidden * place + j;
    float i = gate[0], f = gate[hidden], g = gate[2 * hidden], o = gate[3 * hidden];
    float before = place < remembering ? cells_before[at] : 0.0f;
    float level = squashed[at];
    float slope = output_gradient[(size_t)height * place + j] + (place < later ? carried[at] : 0.0f);
    float through = cell_gradient[at] + slope * o * (1.0f - level * level);
    cell_gradient[at] = through * f;
    gate[0] = through * g * i * (1.0f - i);
    gate[hidden] = through * before * f * (1.0f - f);
    gate[2 * hidden] = through * i * (1.0f - g * g);
    gate[3 * hidden] = slope * level * o * (1.0f - o);
}

extern "C" __global__ void embed(float* x, const float* table, const int* ids, int width, int columns) {
    size_t at = AT;
    if (at >= (size_t)width * columns) return;
    x[at] = table[(size_t)ids[at / width] * width + at % width];
}

// Dropout: every token of a text by the text's factors.
extern "C" __global__ void mask_columns(float* values, const float* factors, const int* places, int height, int columns) {
    size_t at = AT;
    if (at >= (size_t)height * columns) return;
    values[at] *= factors[(size_t)places[at / height] * height + at % height];
}

extern "C" __global__ void multiply(float* out, const float* a, const float* b, int count) {
    size_t at = AT;
    if (at < count) out[at] = a[at] * b[at];
}

extern "C" __global__ void add(float* sum, const float* more, int count) {
    size_t at = AT;
    if (at < count) sum[at] += more[at];
}

extern "C" __global__ void fill_columns(float* out, const float* column, int height, int columns) {
    size_t at = AT;
    if (at < (size_t)height * columns) out[at] = column[at % height];
}

extern "C" __global__ void fill(float* out, float value, int count) {
    size_t at = AT;
    if (at < count) out[at] = value;
}

// Layer normalisation, a block a column.
extern "C" __global__ void norm_forward(const float* x, const float* gain, const float* shift, float* out, float* normal,
                                        float* scales, int width, float epsilon) {
    size_t first = (size_t)blockIdx.x * width;
    float sum = 0.0f;
    for (int j = threadIdx.x; j < width; j += BLOCK) sum += x[first + j];
    float mean = block_sum(sum) / width;
    sum = 0.0f;
    for (int j = threadIdx.x; j < width; j += BLOCK) sum += (x[first + j] - mean) * (x[first + j] - mean);
    float scale = 1.0f / sqrtf(block_sum(sum) / width + epsilon);
    for (int j = threadIdx.x; j < width; j += BLOCK) {
        normal[first + j] = (x[first + j] - mean) * scale;
        out[first + j] = gain[j] * normal[first + j] + shift[j];
    }
    if (threadIdx.x == 0) scales[blockIdx.x] = scale;
}

extern "C" __global__ void norm_backward(float* slopes, const float* normal, const float* scales, const float* gain, int width) {
    size_t first = (size_t)blockIdx.x * width;
    float sum = 0.0f, along = 0.0f;
    for (int j = threadIdx.x; j < width; j += BLOCK) {
        sum += slopes[first + j] * gain[j];
        along += slopes[first + j] * gain[j] * normal[first + j];
    }
    float mean = block_sum(sum) / width;
    along = block_sum(along) / width;
    for (int j = threadIdx.x; j < width; j += BLOCK) {
        slopes[first + j] = scales[blockIdx.x] * (slopes[first + j] * gain[j] - mean - normal[first + j] * along);
    }
}

#define MEAN 0
#define MAX 1

// From a vector a token to a vector a text. Lanes from `hidden` on read from the end, and have read everything at the start.
extern "C" __global__ void pool_forward(const float* tokens, float* pooled, int* chosen, const int* starts, const int* lengths,
                                        int lanes, int hidden, int samples, int kind) {
    size_t at = AT;
    if (at >= (size_t)lanes * samples) return;
    int place = at / lanes, lane = at % lanes, length = lengths[place];
    if (kind == MEAN) {
        float sum = 0.0f;
        for (int t = 0; t < length; t++) sum += tokens[(size_t)lanes * (starts[t] + place) + lane];
        pooled[at] = sum * (1.0f / length);
    } else if (kind == MAX) {
        float best = tokens[(size_t)lanes * place + lane];
        int step = 0;
        for (int t = 1; t < length; t++) {
            float value = tokens[(size_t)lanes * (starts[t] + place) + lane];
            // What is no number wins, lest a training that diverged go unseen.
            if (value > best || isnan(value)) {
                best = value;
                step = t;
            }
        }
        pooled[at] = best;
        chosen[at] = step;
    } else {
        int t = lane < hidden ? length - 1 : 0;
        pooled[at] = tokens[(size_t)lanes * (starts[t] + place) + lane];
    }
}

extern "C" __global__ void pool_backward(float* tokens, const float* slopes, const int* chosen, const int* places, const int* steps,
                                         const int* lengths, int lanes, int hidden, int columns, int kind) {
    size_t at = AT;
    if (at >= (size_t)lanes * columns) return;
    int column = at / lanes, lane = at % lanes, place = places[column], t = steps[column], length = lengths[place];
    size_t from = (size_t)place * lanes + lane;
    if (kind == MEAN) tokens[at] = slopes[from] * (1.0f / length);
    else if (kind == MAX) tokens[at] = chosen[from] == t ? slopes[from] : 0.0f;
    else tokens[at] = t == (lane < hidden ? length - 1 : 0) ? slopes[from] : 0.0f;
}

// What follows the projection: tanh, or max(0, x).
extern "C" __global__ void squash_forward(float* values, int is_tanh, int count) {
    size_t at = AT;
    if (at < count) values[at] = is_tanh ? tanhf(values[at]) : fmaxf(values[at], 0.0f);
}

extern "C" __global__ void squash_backward(float* slopes, const float* values, int is_tanh, int count) {
    size_t at = AT;
    if (at < count) slopes[at] *= is_tanh ? 1.0f - values[at] * values[at] : (values[at] > 0.0f ? 1.0f : 0.0f);
}

// Losses of texts in double precision; scores leave as the gradient of what the step minimises. A thread a text.
extern "C" __global__ void cross_entropy(float* logits, const int* aims, const float* weights, const float* taught, double* losses,
                                         int* hits, int classes, int samples) {
    int place = AT;
    if (place >= samples) return;
    float* line = logits + (size_t)classes * place;
    int own = aims[place];
    float share = weights[3 * place], label = weights[3 * place + 1], teacher = weights[3 * place + 2];
    float most = line[0];
    for (int c = 1; c < classes; c++) most = fmaxf(most, line[c]);
    double total = 0.0;
    for (int c = 0; c < classes; c++) total += exp((double)(line[c] - most));
    losses[place] = share * (log(total) - (double)(line[own] - most));
    int hit = 1;
    for (int c = 0; c < classes; c++) hit = hit && (c == own || line[c] < line[own]);
    hits[place] = hit;
    for (int c = 0; c < classes; c++) {
        float probability = (float)(exp((double)(line[c] - most)) / total);
        float slope = label * (probability - (c == own ? 1.0f : 0.0f));
        if (teacher != 0.0f) slope += teacher * (probability - taught[(size_t)classes * place + c]);
        line[c] = share * slope;
    }
}

// The gradient of word vectors: a block a word, its columns one after the other.
extern "C" __global__ void add_to_words(float* gradient, const float* back, const int* words, const int* ends, const int* columns,
                                        int width) {
    int word = blockIdx.x, first = word == 0 ? 0 : ends[word - 1];
    for (int j = threadIdx.x; j < width; j += BLOCK) {
        float sum = gradient[(size_t)words[word] * width + j];
        for (int at = first; at < ends[word]; at++) sum += back[(size_t)columns[at] * width + j];
        gradient[(size_t)words[word] * width + j] = sum;
    }
}

// Of every block of threads: the sum of squares of its part of the gradient, and the largest size of a parameter.
extern "C" __global__ void lengths(const float* gradient, const float* parameters, double* squares, float* largest, int count) {
    __shared__ double sums[BLOCK];
    __shared__ float most[BLOCK];
    double sum = 0.0;
    float size = 0.0f;
    for (size_t at = AT; at < count; at += (size_t)gridDim.x * BLOCK) {
        sum += (double)gradient[at] * (double)gradient[at];
        size = fmaxf(size, fabsf(parameters[at]));
    }
    sums[threadIdx.x] = sum;
    most[threadIdx.x] = size;
    __syncthreads();
    for (int half = BLOCK / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            sums[threadIdx.x] += sums[threadIdx.x + half];
            most[threadIdx.x] = fmaxf(most[threadIdx.x], most[threadIdx.x + half]);
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        squares[blockIdx.x] = sums[0];
        largest[blockIdx.x] = most[0];
    }
}

extern "C" __global__ void shrink(float* values, float factor, int count) {
    size_t at = AT;
    if (at < count) values[at] *= factor;
}

// AdamW without the decay, which comes before it. The gradient is cleared.
extern "C" __global__ void adam(float* parameters, float* means, float* squares, float* gradient, float clip, float rate,
                                float mean_share, float square_share, int count) {
    size_t at = AT;
    if (at >= count) return;
    float slope = gradient[at] * clip;
    float mean = 0.9f * means[at] + (1.0f - 0.9f) * slope;
    float square = 0.999f * squares[at] + (1.0f - 0.999f) * slope * slope;
    means[at] = mean;
    squares[at] = square;
    parameters[at] -= rate * (mean * mean_share) / (sqrtf(square * square_share) + 1e-8f);
    gradient[at] = 0.0f;
}
