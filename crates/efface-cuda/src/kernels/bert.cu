// What a pretrained encoder does beside products. A token is a row; the rows of a text follow each other. HEAD is the width of an
// attention head.

#define BLOCK 256
// Keys that are held by a block at a time, and threads of a block of queries.
#define TILE 32
#define QUERIES 128
#define AT ((size_t)blockIdx.x * blockDim.x + threadIdx.x)

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

__device__ void norm_row(float* row, const float* scale, const float* shift, int width, float epsilon) {
    float sum = 0.0f;
    for (int j = threadIdx.x; j < width; j += BLOCK) sum += row[j];
    float mean = block_sum(sum) / width;
    sum = 0.0f;
    for (int j = threadIdx.x; j < width; j += BLOCK) sum += (row[j] - mean) * (row[j] - mean);
    float factor = 1.0f / sqrtf(block_sum(sum) / width + epsilon);
    for (int j = threadIdx.x; j < width; j += BLOCK) row[j] = (row[j] - mean) * factor * scale[j] + shift[j];
}

// Word and position, normalised; a block a token.
extern "C" __global__ void embed_tokens(float* x, const float* words, const float* positions, const int* tokens, const int* places,
                                        const float* scale, const float* shift, int hidden, float epsilon) {
    float* row = x + (size_t)blockIdx.x * hidden;
    const float* word = words + (size_t)tokens[blockIdx.x] * hidden;
    const float* position = positions + (size_t)places[blockIdx.x] * hidden;
    for (int j = threadIdx.x; j < hidden; j += BLOCK) row[j] = word[j] + position[j];
    norm_row(row, scale, shift, hidden, epsilon);
}

// rows += residual + bias, normalised; a block a token.
extern "C" __global__ void add_norm(float* rows, const float* residual, const float* bias, const float* scale, const float* shift,
                                    int width, float epsilon) {
    float* row = rows + (size_t)blockIdx.x * width;
    for (int j = threadIdx.x; j < width; j += BLOCK) row[j] += residual[(size_t)blockIdx.x * width + j] + bias[j];
    norm_row(row, scale, shift, width, epsilon);
}

extern "C" __global__ void add_bias(float* rows, const float* bias, int width, int tokens) {
    size_t at = AT;
    if (at < (size_t)width * tokens) rows[at] += bias[at % width];
}

extern "C" __global__ void bias_gelu(float* rows, const float* bias, int width, int tokens) {
    size_t at = AT;
    if (at >= (size_t)width * tokens) return;
    float value = rows[at] + bias[at % width];
    rows[at] = 0.5f * value * (1.0f + erff(value * 0.70710678118654752f));
}

// softmax(Q Kᵀ scale) V of one head of one text, a thread a query, without ever writing the scores down.
extern "C" __global__ void attention(const float* qkv, float* context, const int* starts, const int* lengths, int hidden, float scale) {
    __shared__ float keys[TILE][HEAD];
    __shared__ float values[TILE][HEAD];
    int start = starts[blockIdx.x], length = lengths[blockIdx.x];
    if (blockIdx.z * QUERIES >= length) return;
    int own = blockIdx.z * QUERIES + threadIdx.x;
    int offset = blockIdx.y * HEAD;
    const float* line = qkv + (size_t)(start + min(own, length - 1)) * 3 * hidden + offset;
    float query[HEAD], sum[HEAD];
#pragma unroll
    for (int d = 0; d < HEAD; d++) {
        query[d] = line[d] * scale;
        sum[d] = 0.0f;
    }
    float most = -1e30f, total = 0.0f;
    for (int first = 0; first < length; first += TILE) {
        int count = min(TILE, length - first);
        __syncthreads();
        for (int at = threadIdx.x; at < count * HEAD; at += QUERIES) {
            const float* row = qkv + (size_t)(start + first + at / HEAD) * 3 * hidden + offset + at % HEAD;
            keys[at / HEAD][at % HEAD] = row[hidden];
            values[at / HEAD][at % HEAD] = row[2 * hidden];
        }
        __syncthreads();
        float scores[TILE];
        float high = most;
#pragma unroll
        for (int k = 0; k < TILE; k++) {
            scores[k] = 0.0f;
            if (k < count) {
#pragma unroll
                for (int d = 0; d < HEAD; d++) scores[k] += query[d] * keys[k][d];
                high = fmaxf(high, scores[k]);
            }
        }
        float factor = expf(most - high);
        total *= factor;
#pragma unroll
        for (int d = 0; d < HEAD; d++) sum[d] *= factor;
#pragma unroll
        for (int k = 0; k < TILE; k++) {
            if (k < count) {
                float weight = expf(scores[k] - high);
                total += weight;
#pragma unroll
                for (int d = 0; d < HEAD; d++) sum[d] += weight * values[k][d];
            }
        }
        most = high;
    }
    if (own < length) {
        float* out = context + (size_t)(start + own) * hidden + offset;
#pragma unroll
        for (int d = 0; d < HEAD; d++) out[d] = sum[d] / total;
    }
}

// The mean of a text's tokens, scaled to length 1; a block a text.
extern "C" __global__ void unit_mean(const float* x, float* out, const int* starts, const int* lengths, int hidden) {
    int start = starts[blockIdx.x], length = lengths[blockIdx.x];
    float* row = out + (size_t)blockIdx.x * hidden;
    float squares = 0.0f;
    for (int j = threadIdx.x; j < hidden; j += BLOCK) {
        float sum = 0.0f;
        for (int t = 0; t < length; t++) sum += x[(size_t)(start + t) * hidden + j];
        row[j] = sum / length;
        squares += row[j] * row[j];
    }
    float size = fmaxf(sqrtf(block_sum(squares)), 1e-12f);
    for (int j = threadIdx.x; j < hidden; j += BLOCK) row[j] /= size;
}
